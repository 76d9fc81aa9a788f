"""What stays in the last-level cache when operands are used again and again."""

#: How sharply hits turn into misses around the capacity. The GEMMs do not tell: 4 to 20 fit alike.
#: A plain sweep (data/measurements/h200/micro/l2_read.csv) falls from full to HBM rate between 36
#: and 52 MiB, later than GEMMs do.
MISS_EXPONENT = 8


def miss_fraction(footprint_bytes, capacity_bytes):
    r"""Share of the operands' bytes that a replay finds no longer in L2.

    .. math:: \frac{1}{1 + (C / F)^8}

    Parameters
    ----------
    footprint_bytes : array_like
        Bytes of everything that runs together, replayed operands included [B].
    capacity_bytes : array_like
        Bytes that the cache keeps in effect [B].

    Examples
    --------
    >>> float(miss_fraction(30e6, 30e6)), round(float(miss_fraction(60e6, 30e6)), 3)
    (0.5, 0.996)
    """
    return 1.0 / (1.0 + (capacity_bytes / footprint_bytes) ** MISS_EXPONENT)


def hbm_seconds(footprint_bytes, miss, hbm_bytes_per_s):
    r"""Time HBM needs for the bytes that miss [s].

    .. math:: F\,\mathrm{miss} / B

    Examples
    --------
    >>> float(hbm_seconds(42.2e6, 1.0, 4.22e12))
    1e-05
    """
    return footprint_bytes * miss / hbm_bytes_per_s


def load_latency(hit_clk, miss_share, miss):
    r"""Latency of a load when a share of the loads misses [clk].

    .. math:: \lambda = \lambda_0 (1 + \eta\,\mathrm{miss})

    Examples
    --------
    >>> load_latency(400.0, 1.25, 1.0)
    900.0
    """
    return hit_clk * (1.0 + miss_share * miss)
