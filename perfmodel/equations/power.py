"""Clock drop under power: matrix units in steady work pull the clock down."""


def clock_stretch(flop, matrix_share, drop_share, drop_flop):
    r"""Factor by which the clock, and with it every cycle, is longer than at its peak.

    .. math:: \varphi = 1 + \delta \, \frac{f}{f + f_0} \, \frac{\mathrm{matrix}}{\mathrm{core}}

    The power limit acts on work that lasts: a GEMM replayed in a benchmark, or a layer repeated in
    a model, draws steady power in proportion to its operations, and only while the matrix unit is
    the busy part of a step. Without it large GEMMs are predicted up to 25 % too fast.

    Parameters
    ----------
    flop : array_like
        Operations of one launch [FLOP].
    matrix_share : array_like
        Share of a step in which the matrix pipe works, 0 to 1.
    drop_share : array_like
        The most the clock period grows.
    drop_flop : array_like
        Launch at which half of that is reached [FLOP].

    References
    ----------
    .. [1] data/measurements/h200/micro/clock.csv: 1.80 GHz in small GEMMs, 1.30 to 1.46 GHz in
       large ones of the same kernel, with equal cycles for each.

    Examples
    --------
    >>> round(clock_stretch(30e9, 0.8, 0.7, 30e9), 2)
    1.28
    """
    return 1.0 + drop_share * flop / (flop + drop_flop) * matrix_share
