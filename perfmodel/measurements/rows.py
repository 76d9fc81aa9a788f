"""Rows of measured tables as the arrays that the model takes, and why others are left out."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfmodel.device_files import device_names
from perfmodel.gpu.kernels import Kernels, infeasible, kernels_from, occupancy_of
from perfmodel.gpu.machine import machine_of
from perfmodel.gpu.timing import concurrent_time
from perfmodel.measurements.table import KERNEL, read_kernels
from perfmodel.problems import Gemms, gemms
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
    seconds : ndarray
        Measured time of one launch on every branch [s].
    """

    gemms: Gemms
    kernels: Kernels
    occupancy: np.ndarray
    degree: np.ndarray
    rounds: np.ndarray
    seconds: np.ndarray

    def __getitem__(self, index):
        arrays = (self.gemms, self.kernels, self.occupancy, self.degree, self.rounds, self.seconds)
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
            machine, self.gemms, self.kernels, self.occupancy, self.degree, self.rounds)


def with_resources(table, kernel_files=None):
    """The table with compiler-reported resources joined by tile columns where they are known.

    Parameters
    ----------
    table : DataFrame
        Rows with tile columns; what it has itself is kept.
    kernel_files : sequence of path, optional
        The shipped H200 kernels, if None.

    Raises
    ------
    ValueError
        As in `table.read_kernels`.
    """
    if kernel_files is None:
        kernel_files = [data_path("measurements", "h200", "kernels.csv")]
    known = pd.concat([read_kernels(path) for path in kernel_files]).drop_duplicates(KERNEL)
    extra = [name for name in _RESOURCES if name in known]
    joined = table.merge(known[KERNEL + extra], on=KERNEL, how="left", suffixes=("", "_joined"))
    for name in extra:
        if f"{name}_joined" in joined:
            joined[name] = joined[name].fillna(joined.pop(f"{name}_joined"))
    return joined.set_axis(table.index)


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
    reasons = np.full(len(table), "", dtype=object)
    lacking = ~table["dtype"].isin(list(device.matrix_flop_per_clock_per_compute_unit))
    reasons[lacking] = "dtype the device lacks"
    if "cache" in table:
        reasons[(table["cache"] == "cold").to_numpy(bool)] = "cold cache"
    other = (table["device"] != device.name).to_numpy()
    known = table["device"].isin([*device_names(), device.name]).to_numpy()
    reasons[other] = "other device"
    reasons[other & ~known] = "unknown device"
    for dtype, group in table[reasons == ""].groupby("dtype"):
        at = table.index.get_indexer(group.index)
        reasons[at] = infeasible(device, kernels_from(_floats(group), dtype))
    return table[reasons == ""], Counter(reasons[reasons != ""])


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
        table["time_us"].to_numpy() * US,
    )


def _floats(table):
    known = [name for name in _RESOURCES if name in table]
    columns = {name: table[name].to_numpy(np.int64) for name in KERNEL}
    return columns | {name: table[name].astype(float).to_numpy() for name in known}
