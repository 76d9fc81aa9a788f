"""The power limit: matrix work that lasts pulls the clock down."""


def power_cycles(matrix, flop, drop_share, drop_flop):
    r"""Cycles of the peak clock that one step's matrix work costs more under the power limit [clk].

    .. math:: \delta \, \frac{f}{f + f_0} \, \mathrm{matrix}

    A chip under steady matrix work lowers its clock; a GEMM replayed in a benchmark, or a layer
    repeated in a model, keeps it in that state. How low depends on the load of the last
    milliseconds, which one launch does not tell: its operations stand in for it, since large
    launches are what keeps a chip at its limit.

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
    .. [1] data/measurements/h200/micro/clock.csv: the peak clock is 1.98 GHz; 1.8 GHz is held in
       GEMMs that leave most compute units idle, 1.3 to 1.65 GHz in those that fill the chip.
       Single launches (mixed_pairs, mixed_quadruples) suffer a third of what replayed ones do.

    Examples
    --------
    >>> power_cycles(500.0, 30e9, 0.6, 30e9)
    150.0
    """
    return drop_share * flop / (flop + drop_flop) * matrix
