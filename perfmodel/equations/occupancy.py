"""How many workgroups a compute unit holds at once, and what limits it (NVIDIA's rules).

Source of all: NVIDIA, CUDA C++ Programming Guide, "Hardware multithreading" and the table of
technical specifications per compute capability; CUDA Toolkit, cuda_occupancy.h (allocation
granularity). Checked against the driver's answer for all kernels of
data/measurements/h200/kernels.csv.
"""

import numpy as np

#: What can limit the occupancy, in the order of `limits`.
LIMITS = ("registers", "lds", "wavefronts", "workgroups")


def round_up(value, unit):
    r"""Smallest multiple of `unit` that is not below `value`.

    .. math:: \lceil v / u \rceil u

    Examples
    --------
    >>> float(round_up(3900, 256))
    4096.0
    """
    return np.ceil(np.asarray(value, float) / unit) * unit


def workgroups_by_registers(
    registers_per_thread, warps, registers_per_compute_unit, register_allocation_unit,
    simds_per_compute_unit, threads_per_wavefront,
):
    r"""Workgroups whose registers fit.

    Each SIMD has its own share of the file and holds whole wavefronts:

    .. math:: \left\lfloor \frac{s}{w} \left\lfloor
              \frac{R / s}{\lceil 32 r / g \rceil g} \right\rfloor \right\rfloor

    Parameters
    ----------
    registers_per_thread, warps : array_like
    registers_per_compute_unit, register_allocation_unit : array_like
        32-bit registers; what a wavefront's are rounded up to.
    simds_per_compute_unit, threads_per_wavefront : array_like

    Examples
    --------
    128 registers, 4 wavefronts: 4 wavefronts a SIMD, so 16 in all.

    >>> float(workgroups_by_registers(128, 4, 65536, 256, 4, 32))
    4.0
    """
    wavefront = round_up(threads_per_wavefront * np.asarray(registers_per_thread, float),
                         register_allocation_unit)
    wavefronts = np.floor(registers_per_compute_unit / simds_per_compute_unit / wavefront)
    return np.floor(wavefronts * simds_per_compute_unit / warps)


def workgroups_by_lds(lds_bytes, lds_bytes_per_compute_unit, reserve_bytes, allocation_bytes):
    r"""Workgroups whose LDS fits.

    .. math:: \lfloor L_{CU} / \lceil (l + l_0) / g \rceil g \rfloor

    Parameters
    ----------
    lds_bytes : array_like
        Asked for by one workgroup, all stages [B].
    lds_bytes_per_compute_unit, reserve_bytes, allocation_bytes : array_like
        What there is, what the system adds to each workgroup, and the granularity [B].

    Examples
    --------
    Hopper: 228 KiB, 1 KiB of it reserved for each workgroup.

    >>> float(workgroups_by_lds(49152, 228 * 1024, 1024, 128))
    4.0
    """
    asked = round_up(np.asarray(lds_bytes, float) + reserve_bytes, allocation_bytes)
    return np.floor(lds_bytes_per_compute_unit / np.maximum(asked, 1.0))


def limits(by_registers, by_lds, warps, wavefronts_per_compute_unit, workgroups_per_compute_unit):
    """Workgroups that each of `LIMITS` allows, stacked along a new first axis.

    Parameters
    ----------
    by_registers, by_lds, warps : array_like
    wavefronts_per_compute_unit, workgroups_per_compute_unit : array_like
        Slots.

    Examples
    --------
    >>> limits(4.0, 3.0, 4, 64, 32).tolist()
    [4.0, 3.0, 16.0, 32.0]
    """
    by_wavefronts = np.floor(wavefronts_per_compute_unit / np.asarray(warps, float))
    parts = (by_registers, by_lds, by_wavefronts, float(workgroups_per_compute_unit))
    return np.stack(np.broadcast_arrays(*parts))


def occupancy(allowed):
    """Workgroups resident on a compute unit, and the index into `LIMITS` of what binds.

    Parameters
    ----------
    allowed : ndarray, shape (4, ...)
        From `limits`. Of several that bind the first is named.

    Returns
    -------
    workgroups : ndarray
        0 where not one fits.
    binding : ndarray of int

    Examples
    --------
    >>> held, binding = occupancy(limits(4.0, 3.0, 4, 64, 32))
    >>> float(held), LIMITS[int(binding)]
    (3.0, 'lds')
    """
    return allowed.min(axis=0), allowed.argmin(axis=0)


#: Carve-outs of the L1 memory for LDS that NVIDIA's data-centre chips offer, up to a chip's own
#: most, KiB. CUDA C++ Programming Guide, compute capabilities 7.0 to 9.0.
CARVEOUTS_KIB = (8, 16, 32, 64, 100, 132, 164, 196)

#: A kernel that asks for more than this gets the largest carve-out [B]; Triton sets it so.
CARVEOUT_THRESHOLD_BYTES = 48 * 1024


def default_carveout(lds_bytes, workgroups, lds_bytes_per_compute_unit, reserve_bytes):
    """Carve-out that a kernel runs under if nothing sets it [B].

    The smallest that holds as many workgroups as fit at best, or the largest for kernels above
    `CARVEOUT_THRESHOLD_BYTES`. Kernels of different carve-outs do not share a compute unit:
    data/measurements/h200/micro/carveout.csv, 30 of 30 cases.

    Parameters
    ----------
    lds_bytes, workgroups : array_like
        LDS of a workgroup [B], workgroups resident at most.
    lds_bytes_per_compute_unit, reserve_bytes : float
        What there is, and what the system adds to each workgroup [B].

    Examples
    --------
    48 KiB four times needs 196 KiB; 24 KiB nine times 225 KiB, so all of Hopper's 228.

    >>> [float(default_carveout(kib * 1024, n, 228 * 1024, 1024)) / 1024
    ...  for kib, n in ((48, 4), (24, 9), (64, 3))]
    [196.0, 228.0, 228.0]
    """
    most = float(lds_bytes_per_compute_unit)
    options = np.array([kib * 1024.0 for kib in CARVEOUTS_KIB if kib * 1024 < most] + [most])
    lds_bytes = np.asarray(lds_bytes, float)
    need = np.asarray(workgroups, float) * (lds_bytes + reserve_bytes)
    fitting = options[np.minimum(np.searchsorted(options, need), len(options) - 1)]
    return np.where(lds_bytes > CARVEOUT_THRESHOLD_BYTES, most, fitting)
