"""The power limit: matrix work that lasts pulls the clock down."""


def power_cycles(matrix, flop, drop_share, drop_flop):
    r"""Cycles of the peak clock that one step's matrix work costs more under the power limit [clk].

    .. math:: \delta \, \frac{f}{f + f_0} \, \mathrm{matrix}

    The limit acts on work that lasts: a GEMM replayed in a benchmark, or a layer repeated in a
    model, draws power in proportion to its matrix operations, and what it draws beyond the limit
    it pays for in time. Without this, large GEMMs are predicted up to 25 % too fast.

    Parameters
    ----------
    matrix : array_like
        Cycles of the matrix pipe for the step [clk].
    flop : array_like
        Operations of one launch [FLOP].
    drop_share : array_like
        The most that matrix work is stretched.
    drop_flop : array_like
        Launch at which half of that is reached [FLOP].

    References
    ----------
    .. [1] data/measurements/h200/micro/clock.csv: 1.8 GHz in small GEMMs, 1.3 to 1.5 GHz in large
       ones of the same kernel, with equal cycles for each.

    Examples
    --------
    >>> power_cycles(500.0, 30e9, 0.6, 30e9)
    150.0
    """
    return drop_share * flop / (flop + drop_flop) * matrix
