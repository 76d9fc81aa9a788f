"""The roofline, and the traffic of a GEMM that it needs."""

import numpy as np


def gemm_bytes(m, n, k, batch, operand_bytes, output_bytes):
    r"""Bytes of A, B and C, each once: the footprint, and the least traffic [B].

    .. math:: \Phi = \mathrm{batch}\,(b (m k + k n) + e\, m n)

    Parameters
    ----------
    m, n, k, batch : array_like
        [elements], [1]
    operand_bytes, output_bytes : array_like
        Bytes of an element of A or B, and of C [B].

    Examples
    --------
    >>> float(gemm_bytes(512, 1024, 2048, 1, 2, 2)) / 2**20
    7.0
    """
    m, n, k = (np.asarray(size, float) for size in (m, n, k))
    return batch * (operand_bytes * (m * k + k * n) + output_bytes * m * n)


def arithmetic_intensity(flop, traffic_bytes):
    r"""Operations per byte [FLOP/B].

    .. math:: f / \Phi

    Examples
    --------
    >>> arithmetic_intensity(2 * 512 * 1024 * 2048, 7 * 2**20)
    292.57142857142856
    """
    return flop / traffic_bytes


def roofline_time(flop, traffic_bytes, flop_per_s, bytes_per_s):
    r"""Least time of a kernel: the slower of arithmetic and memory [s].

    .. math:: \max(f / P, \Phi / B)

    References
    ----------
    .. [1] S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance
       model for multicore architectures", CACM 52(4), 2009.

    Examples
    --------
    >>> float(roofline_time(2e12, 1e9, 1e15, 4e12))
    0.002
    """
    return np.maximum(flop / flop_per_s, traffic_bytes / bytes_per_s)


def roofline_flop_per_s(intensity, flop_per_s, bytes_per_s):
    r"""Highest rate at an arithmetic intensity [FLOP/s].

    .. math:: \min(P, I B)

    Examples
    --------
    >>> float(roofline_flop_per_s(100.0, 1e15, 4e12))
    400000000000000.0
    """
    return np.minimum(flop_per_s, intensity * bytes_per_s)
