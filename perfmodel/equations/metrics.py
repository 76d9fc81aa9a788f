"""Figures of merit of many times at once."""

import numpy as np


def geometric_mean(ratios, axis=0):
    """Geometric mean over one axis, ndarray.

    .. math:: \\left(\\prod_{i=1}^{n} r_i\\right)^{1/n}

    Parameters
    ----------
    ratios : array_like
        Above 0.
    axis : int, optional

    Examples
    --------
    >>> float(geometric_mean([0.5, 2.0]))
    1.0
    """
    return np.exp(np.mean(np.log(ratios), axis=axis))
