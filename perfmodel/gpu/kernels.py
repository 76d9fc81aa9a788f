"""Candidate kernels: generated from rules or read from a table, with the resources they need."""

from dataclasses import dataclass, fields, replace

import numpy as np

from perfmodel.equations import occupancy as rules
from perfmodel.problems import BYTES_PER_ELEMENT

#: Columns that together name a kernel.
KERNEL = ("macro_tile_m", "macro_tile_n", "depth_u", "stages", "warps", "split_k")

#: Registers a thread needs, estimated: a constant, times each fp32 accumulator, and for each
#: 16-byte copy it issues a step. Least squares on the 58 kernels of
#: data/measurements/h200/kernels.csv, mean absolute error 6.6; the occupancy that follows is right
#: for all of them.
REGISTERS_FIXED = 17.0
REGISTERS_PER_ACCUMULATOR = 1.29
REGISTERS_PER_COPY = 2.3
COPY_BYTES = 16

#: The smallest matrix instruction of NVIDIA's chips, m16n8 (PTX ISA, mma.sync) [elements].
MATRIX_M = 16
MATRIX_N = 8


@dataclass(frozen=True, eq=False)
class Kernels:
    """GEMM kernels, one array a property; all of one shape, indexed together.

    Attributes
    ----------
    macro_tile_m, macro_tile_n, depth_u : int64 array
        Tile of C and slice of k [elements].
    stages, warps, split_k : int64 array
    registers_per_thread, lds_bytes : float64 array
        As the compiler reports them, or estimated [1], [B].
    register_spills : float64 array
        0 where not reported.
    serialised : bool array
        Whether the compiler waits after every matrix instruction.
    reported : bool array
        Whether the resources are the compiler's.
    """

    macro_tile_m: np.ndarray
    macro_tile_n: np.ndarray
    depth_u: np.ndarray
    stages: np.ndarray
    warps: np.ndarray
    split_k: np.ndarray
    registers_per_thread: np.ndarray
    lds_bytes: np.ndarray
    register_spills: np.ndarray
    serialised: np.ndarray
    reported: np.ndarray

    def __len__(self):
        return len(self.macro_tile_m)

    def __getitem__(self, index):
        return replace(self, **{f.name: getattr(self, f.name)[index] for f in fields(self)})

    @property
    def labels(self):
        """Names such as ``128x256x64 s4 w8 z1``, list of str; of a one-axis `Kernels`."""
        return [kernel_label(row) for row in zip(*(getattr(self, name) for name in KERNEL))]


def kernel_label(values):
    """Name of a kernel such as ``128x256x64 s4 w8 z1``.

    Parameters
    ----------
    values : sequence of int
        In the order of `KERNEL`.
    """
    m, n, u, s, w, z = values
    return f"{m}x{n}x{u} s{s} w{w} z{z}"


def kernels_from(table, dtype="fp16"):
    """Kernels of a table; what its resource columns leave out is estimated.

    Parameters
    ----------
    table : mapping of column name to array_like, shape (kernel,)
        The columns of `KERNEL`; optionally registers_per_thread, register_spills, lds_bytes,
        matrix_waits_per_step, where NaN or a missing column means not known.
    dtype : str

    Returns
    -------
    Kernels

    Examples
    --------
    >>> kernels_from(dict(macro_tile_m=[128], macro_tile_n=[128], depth_u=[64], stages=[3],
    ...                   warps=[8], split_k=[1])).lds_bytes
    array([98304.])
    """
    tile = {name: np.asarray(table[name]).astype(np.int64) for name in KERNEL}
    shape = tile["macro_tile_m"].shape
    known = {
        name: np.asarray(table[name], float) if name in table else np.full(shape, np.nan)
        for name in (
            "registers_per_thread", "lds_bytes", "register_spills", "matrix_waits_per_step")
    }
    sides = [tile[name] for name in KERNEL[:3]]
    element = BYTES_PER_ELEMENT[dtype]
    registers = estimated_registers(*sides, tile["warps"], element)
    lds = estimated_lds_bytes(*sides, tile["stages"], element)
    reported = ~np.isnan(known["registers_per_thread"])
    return Kernels(
        **tile,
        registers_per_thread=np.where(reported, known["registers_per_thread"], registers),
        lds_bytes=np.where(np.isnan(known["lds_bytes"]), lds, known["lds_bytes"]),
        register_spills=np.nan_to_num(known["register_spills"]),
        serialised=np.nan_to_num(known["matrix_waits_per_step"]) > 1,
        reported=reported,
    )


def estimated_registers(macro_tile_m, macro_tile_n, depth_u, warps, bytes_per_element):
    """Registers a thread needs, from the tile alone.

    Parameters
    ----------
    macro_tile_m, macro_tile_n, depth_u, warps : array_like of int
    bytes_per_element : float
        [B]

    Returns
    -------
    ndarray of float

    Examples
    --------
    >>> float(estimated_registers(128, 256, 64, 8, 2).round())
    210.0
    """
    threads = 32.0 * warps
    accumulators = macro_tile_m * macro_tile_n / threads
    loaded = (macro_tile_m + macro_tile_n) * depth_u * bytes_per_element
    copies = loaded / (threads * COPY_BYTES)
    return np.asarray(
        REGISTERS_FIXED + REGISTERS_PER_ACCUMULATOR * accumulators + REGISTERS_PER_COPY * copies
    )


def estimated_lds_bytes(macro_tile_m, macro_tile_n, depth_u, stages, bytes_per_element):
    """LDS of a workgroup: the slices of A and B of all stages [B].

    Equal to the compiler's for every kernel of data/measurements/h200/kernels.csv.

    Examples
    --------
    >>> estimated_lds_bytes(64, 32, 64, 4, 2)
    49152.0
    """
    return 1.0 * stages * (macro_tile_m + macro_tile_n) * depth_u * bytes_per_element


def occupancy_of(device, kernels):
    """Workgroups of each kernel that a compute unit holds, and what limits them.

    Parameters
    ----------
    device : Gpu
    kernels : Kernels

    Returns
    -------
    workgroups : ndarray of float
        0 where not one fits.
    binding : ndarray of int
        Index into `equations.occupancy.LIMITS`.
    """
    by_registers = rules.workgroups_by_registers(
        kernels.registers_per_thread, kernels.warps, device.registers_per_compute_unit,
        device.register_allocation_unit, device.simds_per_compute_unit,
        device.threads_per_wavefront,
    )
    by_lds = rules.workgroups_by_lds(
        kernels.lds_bytes, device.lds_bytes_per_compute_unit,
        device.lds_reserve_bytes_per_workgroup, device.lds_allocation_bytes,
    )
    return rules.occupancy(
        rules.limits(by_registers, by_lds, kernels.warps, device.wavefronts_per_compute_unit,
                     device.workgroups_per_compute_unit)
    )


def infeasible(device, kernels):
    """Why each kernel cannot be run or predicted, array of str; empty where it can.

    Parameters
    ----------
    device : Gpu
    kernels : Kernels

    Returns
    -------
    ndarray of str, shape of the kernels
    """
    workgroups, _ = occupancy_of(device, kernels)
    threads = kernels.warps * device.threads_per_wavefront
    whole = (kernels.macro_tile_m % MATRIX_M == 0) & (kernels.macro_tile_n % MATRIX_N == 0)
    reasons = (
        (~whole, f"tile sides are not multiples of {MATRIX_M} and {MATRIX_N}"),
        (kernels.stages < 2, "fewer than 2 stages: the model has no loop without prefetch"),
        (threads > device.threads_per_workgroup_limit, "too many threads a workgroup"),
        (kernels.lds_bytes > device.lds_bytes_per_workgroup_limit, "too much LDS"),
        (kernels.registers_per_thread > device.registers_per_thread_limit, "too many registers"),
        (kernels.register_spills > 0, "registers spilled"),
        (workgroups < 1, "not one workgroup fits a compute unit"),
    )
    return np.select([bad for bad, _ in reasons], [text for _, text in reasons], default="")


def kernel_space(device, dtype="fp16"):
    """Every kernel of the rules that a device can run, `Kernels` of one axis.

    Parameters
    ----------
    device : Gpu
    dtype : str

    Raises
    ------
    ValueError
        If the device has no matrix rate for the dtype.

    Examples
    --------
    >>> from perfmodel.device_files import load_device
    >>> kernel_space(load_device("h200")).labels[0]
    '64x32x32 s2 w4 z1'
    """
    candidates = rule_kernels(device, dtype)
    return candidates[infeasible(device, candidates) == ""]


def rule_kernels(device, dtype="fp16"):
    """Every kernel of the rules, whether it fits the device or not; `infeasible` tells why.

    Powers of two: tiles from 64 x 32 to 256 x 256, a slice of k of 64 to 256 bytes, 2 to 4 stages,
    4 or 8 wavefronts, k split in up to 4. Order and content depend on device and dtype only.
    Wider rules would ask for what no measurement has checked; a table of kernels can.

    Parameters
    ----------
    device : Gpu
    dtype : str

    Raises
    ------
    ValueError
        If the device has no matrix rate for the dtype.
    """
    device.matrix_rate(dtype)
    depths = np.array([64, 128, 256]) // BYTES_PER_ELEMENT[dtype]
    axes = ((64, 128, 256), (32, 64, 128, 256), depths, (2, 3, 4), (4, 8), (1, 2, 4))
    grid = np.meshgrid(*axes, indexing="ij")
    return kernels_from({name: column.ravel() for name, column in zip(KERNEL, grid)}, dtype)
