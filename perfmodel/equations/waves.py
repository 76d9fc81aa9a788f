"""Dispatch in waves: whole ones that fill the chip, and a last one that does not."""

import numpy as np


def waves(workgroups, compute_units, occupancy):
    r"""Waves that all workgroups need; the fraction is the last, partial one.

    .. math:: W = \frac{B}{S o}

    Parameters
    ----------
    workgroups, compute_units, occupancy : array_like
        Workgroups to run, compute units, workgroups resident on each.

    Examples
    --------
    >>> float(waves(330, 132, 2))
    1.25
    """
    return np.asarray(workgroups, float) / (compute_units * np.asarray(occupancy, float))


def last_wave(workgroups, compute_units, occupancy):
    r"""Whole waves, and the workgroups left over for the partial one.

    .. math:: n = \lfloor W \rfloor, \qquad \mathrm{rem} = B - n S o

    Examples
    --------
    >>> whole, rest = last_wave(330, 132, 2)
    >>> float(whole), float(rest)
    (1.0, 66.0)
    """
    whole = np.floor(waves(workgroups, compute_units, occupancy))
    return whole, workgroups - whole * compute_units * occupancy


def residents(workgroups, compute_units):
    r"""Workgroups on the fullest compute unit when they are spread evenly.

    .. math:: r = \lceil B / S \rceil

    Examples
    --------
    >>> float(residents(133, 132))
    2.0
    """
    return np.ceil(np.asarray(workgroups, float) / compute_units)
