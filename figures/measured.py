"""What every figure starts from: the shipped H200 measurements, with the model beside them."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from perfmodel.device_files import load_device
from perfmodel.gpu.kernels import KERNEL, Kernels
from perfmodel.measurements.rows import GEMM, rows_of, selected, with_resources
from perfmodel.measurements.table import kernel_rows, read_measurements
from perfmodel.measurements.validate import predictions
from perfmodel.problems import Gemms
from perfmodel.resources import data_path
from perfmodel.units import US

DEVICE = "h200"
DTYPE = "fp16"
MEASURED = "measured"
MODELLED = "modelled"
SOURCES = (MEASURED, MODELLED)

_FILE = ("measurements", DEVICE, "gemm_concurrent.csv.gz")


@dataclass(frozen=True)
class Grid:
    """Measured and modelled times of each GEMM with each kernel at each degree.

    Attributes
    ----------
    device : Gpu
    gemms : Gemms
        Axis 0.
    kernels : Kernels
        Axis 1.
    occupancy : ndarray, shape (kernel,)
        Workgroups on a compute unit.
    degrees : int64 array
        Axis 2.
    rounds : int
        Launches on each branch.
    seconds : dict of source to float64 array, shape (problem, kernel, degree)
        Of one launch on every branch; modelled with parameters fitted without the GEMM [s].
    """

    device: object
    gemms: Gemms
    kernels: Kernels
    occupancy: np.ndarray
    degrees: np.ndarray
    rounds: int
    seconds: dict

    def go_kernel(self, source):
        """Index of each GEMM's fastest kernel at each degree, by a source: (problem, degree)."""
        return self.seconds[source].argmin(axis=1)

    def default_kernel(self, source):
        """Index of each GEMM's fastest kernel in isolation, repeated over degrees."""
        return np.repeat(self.go_kernel(source)[:, :1], len(self.degrees), axis=1)

    def seconds_of(self, source, kernel):
        """Times of one kernel for each GEMM and degree, (problem, degree) [s].

        Parameters
        ----------
        source : str
            One of `SOURCES`.
        kernel : int array, shape (problem, degree)
        """
        return np.take_along_axis(self.seconds[source], kernel[:, None, :], axis=1)[:, 0]


@lru_cache(maxsize=1)
def grid():
    """The shipped table as a `Grid`, read once a process; not to be modified."""
    device = load_device(DEVICE)
    measured = kernel_rows(read_measurements(data_path(*_FILE)))
    table, _ = selected(with_resources(measured, device), device)
    axes = [[*GEMM], [*KERNEL], ["concurrency_degree"]]
    table = predictions(table, device).sort_values([name for axis in axes for name in axis])
    shape = tuple(len(table[axis].drop_duplicates()) for axis in axes)
    if len(table) != np.prod(shape):
        raise ValueError(f"{'/'.join(_FILE)}: {len(table)} rows are not {shape} in full")
    rows = rows_of(table, device, DTYPE)
    at = np.arange(len(table)).reshape(shape)
    seconds = {MEASURED: table["time_us"], MODELLED: table["predicted_us"]}
    return Grid(
        device,
        rows.gemms[at[:, 0, 0]],
        rows.kernels[at[0, :, 0]],
        rows.occupancy[at[0, :, 0]],
        rows.degree[at[0, 0]],
        int(table["rounds"].iloc[0]),
        {source: (column * US).to_numpy().reshape(shape) for source, column in seconds.items()},
    )


def long_table(gemms, degrees, columns):
    """One row a GEMM and degree, with its sizes.

    Parameters
    ----------
    gemms : Gemms, length problem
    degrees : int array, length degree
    columns : mapping of column name to array_like
        Of shape (problem, degree), or broadcast to it.

    Returns
    -------
    DataFrame
    """
    shape = (len(gemms), len(degrees))
    axes = {name: getattr(gemms, name)[:, None] for name in ("m", "n", "k")}
    axes["concurrency_degree"] = degrees
    return pd.DataFrame({
        name: np.broadcast_to(column, shape).ravel() for name, column in (axes | columns).items()
    })
