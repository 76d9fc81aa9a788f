"""Rows of measured tables as the arrays that the model takes, and why others are left out."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfmodel.device_files import device_names
from perfmodel.gpu.kernels import Kernels, infeasible, kernels_from, occupancy_of
from perfmodel.gpu.machine import machine_of
from perfmodel.gpu.mixed import Member, member_of, mixed_time
from perfmodel.gpu.timing import concurrent_time
from perfmodel.measurements.table import KERNEL, read_kernels
from perfmodel.problems import DTYPES, Gemms, gemms
from perfmodel.resources import data_path
from perfmodel.units import US

#: Columns that together name a GEMM.
GEMM = ["m", "n", "k", "batch"]

_RESOURCES = ["registers_per_thread", "register_spills", "lds_bytes", "matrix_waits_per_step"]


@dataclass(frozen=True)
class Rows:
    """Measured rows of one dtype, arrays of shape (row,).

    Attributes
    ----------
    gemms : Gemms
    kernels : Kernels
    occupancy, degree, rounds : ndarray
    cold : ndarray of bool
        Whether L2 was empty at the start.
    seconds : ndarray
        Measured time of one launch on every branch [s].
    """

    gemms: Gemms
    kernels: Kernels
    occupancy: np.ndarray
    degree: np.ndarray
    rounds: np.ndarray
    cold: np.ndarray
    seconds: np.ndarray

    def __getitem__(self, index):
        arrays = (self.gemms, self.kernels, self.occupancy, self.degree, self.rounds, self.cold,
                  self.seconds)
        return Rows(*(array[index] for array in arrays))

    @property
    def labels(self):
        """Name of each row's GEMM, ndarray of str."""
        return np.array(self.gemms.labels)

    def predicted(self, device, values=None):
        """Predicted time of each row [s].

        Parameters
        ----------
        device : Gpu
        values : mapping of parameter name to float, optional
            In place of the device's own.
        """
        machine = machine_of(device, self.gemms.dtype, values)
        return concurrent_time(
            machine, self.gemms, self.kernels, self.occupancy, self.degree, self.rounds, self.cold)


@dataclass(frozen=True)
class MemberRows:
    """Measured sets of different GEMMs of one dtype, arrays of shape (row,).

    Attributes
    ----------
    members : tuple of Member
    one_carveout : ndarray of bool
        Whether one shared-memory carve-out was set for all kernels.
    seconds : ndarray
        Measured time until all have ended [s].
    """

    members: tuple[Member, ...]
    one_carveout: np.ndarray
    seconds: np.ndarray

    def __getitem__(self, index):
        members = tuple(member[index] for member in self.members)
        return MemberRows(members, self.one_carveout[index], self.seconds[index])

    @property
    def labels(self):
        """Name of each row's first GEMM, ndarray of str."""
        return np.array(self.members[0].gemms.labels)

    def predicted(self, device, values=None):
        """Predicted time of each row [s]; as `Rows.predicted`."""
        machine = machine_of(device, self.members[0].gemms.dtype, values)
        return mixed_time(machine, self.members, self.one_carveout)


def with_resources(table, device, kernel_files=None):
    """The table with compiler-reported resources joined by tile columns where they are known.

    Parameters
    ----------
    table : DataFrame
        Rows with tile columns; what it has itself is kept.
    device : Gpu
    kernel_files : sequence of path, optional
        If None the shipped kernels, which were compiled for Hopper, on a Hopper device. The first
        file that has a kernel for a dtype is believed.

    Raises
    ------
    ValueError
        As in `table.read_kernels`.
    """
    if kernel_files is None and not device.architecture.startswith("hopper"):
        return table
    known = _known_kernels(kernel_files)
    extra = [name for name in _RESOURCES if name in known]
    key = ["dtype", *KERNEL]
    joined = table.merge(known[key + extra], on=key, how="left", suffixes=("", "_joined"))
    for name in extra:
        if f"{name}_joined" in joined:
            joined[name] = joined[name].fillna(joined.pop(f"{name}_joined"))
    return joined.set_axis(table.index)


def _known_kernels(files):
    """Kernel tables as one, with a row for each dtype that it holds for."""
    if files is None:
        folder = data_path("measurements", "h200")
        shipped = read_kernels(folder / "kernels.csv").assign(dtype="fp16")
        tables = [shipped, read_kernels(folder / "kernels_dtypes.csv")]
    else:
        tables = [read_kernels(path) for path in files]
    every = pd.DataFrame({"dtype": DTYPES})
    whole = pd.concat([t if "dtype" in t else t.merge(every, how="cross") for t in tables])
    return whole.drop_duplicates(["dtype", *KERNEL])


def selected(table, device):
    """The rows that the model can predict on a device, and how many it cannot, by reason.

    Parameters
    ----------
    table : DataFrame
        From `with_resources`.
    device : Gpu

    Returns
    -------
    table : DataFrame
    skipped : Counter of str
    """
    reasons = refusals(table, device)
    return table[reasons == ""], Counter(reasons[reasons != ""])


def refusals(table, device):
    """Why the model cannot predict a row, ndarray of str of shape (row,); empty where it can.

    Parameters
    ----------
    table : DataFrame
        From `with_resources`.
    device : Gpu
    """
    reasons = np.full(len(table), "", dtype=object)
    lacking = ~table["dtype"].isin(list(device.matrix_flop_per_clock_per_compute_unit))
    reasons[lacking] = "dtype the device lacks"
    other = (table["device"] != device.name).to_numpy()
    known = table["device"].isin([*device_names(), device.name]).to_numpy()
    reasons[other] = "other device"
    reasons[other & ~known] = "unknown device"
    for dtype, group in table[reasons == ""].groupby("dtype"):
        at = table.index.get_indexer(group.index)
        reasons[at] = infeasible(device, kernels_from(_floats(group), dtype))
    return reasons


def rows_of(table, device, dtype):
    """The rows of one dtype as arrays.

    Parameters
    ----------
    table : DataFrame
        From `selected`, rows of this dtype only.
    device : Gpu
    dtype : str

    Returns
    -------
    Rows
    """
    kernels = kernels_from(_floats(table), dtype)
    sizes = (table[name].to_numpy() for name in GEMM)
    return Rows(
        gemms(*sizes, dtype=dtype),
        kernels,
        occupancy_of(device, kernels)[0],
        table["concurrency_degree"].to_numpy(),
        table["rounds"].to_numpy(),
        (table["cache"] == "cold").to_numpy(bool),
        table["time_us"].to_numpy() * US,
    )


def members_selected(table, members, device, kernel_files=None):
    """Rows of a table of different GEMMs that the model can predict, and others by reason.

    Parameters
    ----------
    table : DataFrame
        From `table.read_members`.
    members : int
    device : Gpu
    kernel_files : sequence of path, optional
        As in `with_resources`.

    Returns
    -------
    table : DataFrame
    sides : list of DataFrame
        The rows of each member, with the columns of a measurement table.
    skipped : Counter of str
    """
    sides = []
    reasons = pd.Series("", index=table.index)
    for i in range(1, members + 1):
        names = {f"{name}_{i}": name for name in ("m", "n", "k", *KERNEL)}
        side = table[["device", "dtype", *names]].rename(columns=names).assign(batch=1)
        side = with_resources(side, device, kernel_files)
        reason = pd.Series(refusals(side, device), index=table.index)
        reasons = reasons.where(reasons != "", reason)
        sides.append(side)
    kept = reasons == ""
    return table[kept], [side[kept] for side in sides], Counter(reasons[~kept])


def member_rows_of(table, sides, device, dtype):
    """The rows of one dtype of a table of different GEMMs as arrays.

    Parameters
    ----------
    table, sides
        From `members_selected`, rows of this dtype only.
    device : Gpu
    dtype : str

    Returns
    -------
    MemberRows
    """
    members = tuple(
        member_of(
            device, gemms(*(side[name].to_numpy() for name in GEMM), dtype=dtype),
            kernels_from(_floats(side), dtype))
        for side in sides)
    carveout = table["carveout_pct"] if "carveout_pct" in table else pd.Series(-1, table.index)
    times = ["concurrent_time_us", "concurrent_time_reversed_us"]
    measured = table[[name for name in times if name in table]].mean(axis=1)
    return MemberRows(members, (carveout >= 0).to_numpy(), measured.to_numpy() * US)


def _floats(table):
    known = [name for name in _RESOURCES if name in table]
    columns = {name: table[name].to_numpy(np.int64) for name in KERNEL}
    return columns | {name: table[name].astype(float).to_numpy() for name in known}
