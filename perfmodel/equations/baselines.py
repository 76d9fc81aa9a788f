"""Rules by which AMD's libraries judge a kernel, as baselines to compare the model with.

Own code after the published definitions. Concurrent equal GEMMs are what these rules call a batch.
"""

import numpy as np


def granularity(parts):
    r"""Share of the whole rounds begun that is filled: 1 where nothing is left over.

    .. math:: g(x) = x / \lceil x \rceil

    Parameters
    ----------
    parts : array_like
        Tiles along a side, or tiles per compute unit; above 0, whole or not.

    Examples
    --------
    >>> float(granularity(1.5))
    0.75
    """
    parts = np.asarray(parts, float)
    return parts / np.ceil(parts)


def tensile_granularity(
        m, n, batch, macro_tile_m, macro_tile_n, split_k, warps, compute_units,
        simds_per_compute_unit):
    r"""Tensile's total granularity: the share of the ideal rate that a kernel keeps.

    .. math:: G = g\!\left(\frac{m}{M_T}\right) g\!\left(\frac{n}{N_T}\right) g(t)
              \min\!\left(1, \frac{\lfloor t + 1 \rfloor w}{d}\right), \qquad
              t = \frac{\lceil m / M_T \rceil \lceil n / N_T \rceil \mathrm{batch}\, z}{S}

    The factors are the loss at the edges of C along both sides, in the last round of workgroups on
    the S compute units, and on SIMDs without a wavefront. One workgroup a compute unit at a time is
    assumed; depth, stages and memory do not matter.

    Parameters
    ----------
    m, n, batch : array_like of int
        [elements], [1]
    macro_tile_m, macro_tile_n, split_k, warps : array_like of int
        [elements], [1]
    compute_units, simds_per_compute_unit : array_like of int

    Returns
    -------
    ndarray of float
        Above 0, at most 1.

    References
    ----------
    .. [1] ROCm/Tensile, Tensile/Source/lib/source/ContractionSolution.cpp, `computeGranularities`:
       totalGranularity; LocalSplitU is 1 here.

    Examples
    --------
    192 x 256 in tiles of 128 x 128 fills 3 of 4 half tiles of rows; 4 workgroups of 8 units.

    >>> float(tensile_granularity(192, 256, 1, 128, 128, 1, 4, 8, 4))
    0.375
    """
    rows = np.asarray(m, float) / macro_tile_m
    columns = np.asarray(n, float) / macro_tile_n
    per_unit = np.ceil(rows) * np.ceil(columns) * batch * split_k / compute_units
    wavefronts = np.floor(per_unit + 1) * warps / simds_per_compute_unit
    edges = granularity(rows) * granularity(columns)
    return edges * granularity(per_unit) * np.minimum(1.0, wavefronts)


def granularity_time(flop, flop_per_s, total_granularity):
    r"""Time of a kernel that runs at the ideal rate times its granularity [s].

    .. math:: \frac{f}{P\,G}

    Parameters
    ----------
    flop : array_like
        [FLOP]
    flop_per_s : array_like
        Rate where nothing is lost; Tensile measures it for each kernel on a large GEMM [FLOP/s].
    total_granularity : array_like
        From `tensile_granularity`.

    References
    ----------
    .. [1] As `tensile_granularity`, `projectedPerformance`.

    Examples
    --------
    >>> float(granularity_time(1e9, 1e12, 0.5))
    0.002
    """
    return flop / (np.asarray(flop_per_s, float) * total_granularity)


def rate_per_used_unit(flop, seconds, workgroups, compute_units):
    r"""Measured rate of a kernel alone, for each compute unit that it uses [FLOP/s].

    .. math:: \frac{f / t}{\min(B, S)}

    rocBLAS' performance metric `rocblas_cu_efficiency_performance_metric` selects the kernel for
    which this is highest, "useful when running multiple small gemm problems simultaneously"; the
    default selects by f / t.

    Parameters
    ----------
    flop : array_like
        [FLOP]
    seconds : array_like
        Measured time alone [s].
    workgroups, compute_units : array_like of int

    References
    ----------
    .. [1] rocBLAS, library/include/internal/rocblas-types.h, rocblas_performance_metric.
    .. [2] ROCm/Tensile, Tensile/Source/client/source/BenchmarkTimer.cpp, SpeedGFlopsPerCu.

    Examples
    --------
    Twice as long on a quarter of the units is twice as good.

    >>> rate_per_used_unit(1e9, [1e-3, 2e-3], [200, 25], 100) / 1e9
    array([10., 20.])
    """
    used = np.minimum(np.asarray(workgroups, float), compute_units)
    return flop / np.asarray(seconds, float) / used
