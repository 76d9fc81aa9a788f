"""Geometry: what a tile of C asks for, in one step of its main loop and in all.

A kernel gives each workgroup one macro tile of C and one part of k (split-K).
"""

import numpy as np

#: Bytes of a cache line, the unit of a request to L2 (NVIDIA and AMD data-centre GPUs) [B].
LINE_BYTES = 128

#: Rows of C, and bytes of depth, of one Hopper warpgroup matrix instruction, wgmma.m64nNk(32 B).
#: PTX ISA, "Asynchronous warpgroup level matrix instructions".
WGMMA_ROWS = 64
WGMMA_DEPTH_BYTES = 32
WARPGROUP = 4


def workgroups(m, n, batch, macro_tile_m, macro_tile_n, split_k):
    r"""Workgroups of one launch.

    .. math:: \lceil m / M_T \rceil \lceil n / N_T \rceil \cdot \mathrm{batch} \cdot z

    Parameters
    ----------
    m, n, batch, macro_tile_m, macro_tile_n, split_k : array_like of int
        [elements], [1]

    Returns
    -------
    ndarray of float

    Examples
    --------
    512 x 1024 in tiles of 128 x 128: 4 rows of 8 tiles, each split in 2.

    >>> float(workgroups(512, 1024, 1, 128, 128, 2))
    64.0
    """
    return np.ceil(m / macro_tile_m) * np.ceil(n / macro_tile_n) * batch * split_k


def tile_efficiency(m, n, macro_tile_m, macro_tile_n):
    r"""Share of the tiles' area that is C, the rest is padding at its edges.

    .. math:: \frac{m n}{\lceil m / M_T \rceil M_T \lceil n / N_T \rceil N_T}

    Parameters
    ----------
    m, n, macro_tile_m, macro_tile_n : array_like of int
        [elements]

    References
    ----------
    .. [1] Tensile calls it tile granularity (ROCm/Tensile wiki, "Solution selection").

    Examples
    --------
    >>> float(tile_efficiency(192, 256, 128, 128))
    0.75
    """
    covered = np.ceil(m / macro_tile_m) * macro_tile_m * np.ceil(n / macro_tile_n) * macro_tile_n
    return np.asarray(m, float) * n / covered


def depth_steps(k, depth_u, split_k):
    r"""Steps of one workgroup's main loop.

    .. math:: I = \lceil k / (U z) \rceil

    Parameters
    ----------
    k, depth_u, split_k : array_like of int
        [elements], [elements], [1]

    Examples
    --------
    >>> float(depth_steps(1000, 64, 4))
    4.0
    """
    return np.ceil(k / (np.asarray(depth_u, float) * split_k))


def step_flop(macro_tile_m, macro_tile_n, depth_u):
    r"""Operations of one step [FLOP].

    .. math:: f = 2 M_T N_T U

    Examples
    --------
    >>> float(step_flop(128, 128, 64))
    2097152.0
    """
    return 2.0 * macro_tile_m * macro_tile_n * depth_u


def step_bytes(macro_tile_m, macro_tile_n, depth_u, bytes_per_element):
    r"""Bytes of A and B that one step loads [B].

    .. math:: y = b (M_T + N_T) U

    Examples
    --------
    >>> float(step_bytes(128, 128, 64, 2))
    32768.0
    """
    return (np.asarray(macro_tile_m, float) + macro_tile_n) * depth_u * bytes_per_element


def row_requests(macro_tile_m, depth_u, bytes_per_element):
    r"""Cache-line requests for the rows of A in one step, each row starting a line of its own.

    .. math:: q = M_T \lceil U b / 128 \rceil

    Rows of A are `depth_u` elements long and k elements apart (row-major), so a row shorter than
    a line costs a request all the same.

    Examples
    --------
    128 rows of 32 fp16 elements: half a line each.

    >>> float(row_requests(128, 32, 2))
    128.0
    """
    return macro_tile_m * np.ceil(depth_u * bytes_per_element / LINE_BYTES)


def straddled_lines(k, n, macro_tile_m, macro_tile_n, depth_u, bytes_per_element):
    r"""Lines that one step requests beyond the fewest, since rows do not start on a line.

    .. math:: x = M_T \, s(U b, k b) + U \, s(N_T b, n b), \qquad
              s(\ell, p) = \frac{\max(0, \min(\ell, 128) - \gcd(p, 128))}{128}

    Rows start `p` bytes apart, so at multiples of gcd(p, 128) within a line, all alike often. A
    row of length l crosses one line more than it must if it starts late enough in its line.

    Parameters
    ----------
    k, n, macro_tile_m, macro_tile_n, depth_u : array_like of int
        [elements]
    bytes_per_element : int
        [B]

    Examples
    --------
    Rows 2000 B apart start at multiples of 16 B; of 128 B each, 7 in 8 straddle.

    >>> float(straddled_lines(1000, 1024, 128, 128, 64, 2))
    112.0
    """
    def crossing(run, stride):
        reach = np.minimum(run * bytes_per_element, LINE_BYTES)
        start = np.gcd(np.asarray(stride) * bytes_per_element, LINE_BYTES)
        return np.maximum(0, reach - start) / LINE_BYTES

    return macro_tile_m * crossing(depth_u, k) + depth_u * crossing(macro_tile_n, n)


def matrix_read_bytes(macro_tile_m, macro_tile_n, depth_u, warps, bytes_per_element):
    r"""Bytes the matrix unit reads from LDS in one step [B].

    .. math:: L = \frac{M_T}{64} \frac{U b}{32} (64 \cdot 32\, g_n + 32 N_T)

    Each instruction multiplies a 64-row slice of A (64 x 32 B) with the whole width of B its
    warpgroup owns; the slices of A are read by each of the :math:`g_n` warpgroups that lie side by
    side along n, and B is read again for every 64 rows. That re-reading is what makes a narrow tile
    slow. Warpgroups are laid along m while each has 64 rows of its own.

    Valid for Hopper, 16-bit operands and tiles of at least 64 rows. Row-major B of other dtypes
    must be transposed on the way, which is not counted; older chips have no such instruction.

    Parameters
    ----------
    macro_tile_m, macro_tile_n, depth_u, warps : array_like of int
        [elements], [1]
    bytes_per_element : array_like of float
        [B]

    References
    ----------
    .. [1] PTX ISA, wgmma.mma_async: operands of shared memory, m64nNk16 for fp16.

    Examples
    --------
    One warpgroup, 64 x 64, depth 64: four instructions, each 2 KiB of A and 2 KiB of B.

    >>> float(matrix_read_bytes(64, 64, 64, 4, 2)) / 1024
    16.0
    """
    warpgroups = np.maximum(np.asarray(warps, float) / WARPGROUP, 1.0)
    rows = np.asarray(macro_tile_m, float) / WGMMA_ROWS
    along_n = np.maximum(1.0, warpgroups / np.maximum(rows, 1.0))
    instructions = rows * depth_u * bytes_per_element / WGMMA_DEPTH_BYTES
    per_instruction = WGMMA_DEPTH_BYTES * (WGMMA_ROWS * along_n + macro_tile_n)
    return instructions * per_instruction


def stored_elements(m, n, macro_tile_m, macro_tile_n):
    r"""Elements of C that a workgroup stores; what lies over the edge is masked.

    .. math:: u = \min(M_T, m) \min(N_T, n)

    Examples
    --------
    >>> float(stored_elements(96, 1024, 128, 64))
    6144.0
    """
    return np.minimum(np.asarray(macro_tile_m, float), m) * np.minimum(macro_tile_n, n)
