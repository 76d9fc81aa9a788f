"""Rows of a table of equal GEMMs that wait, as the arrays that the model takes."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from perfmodel.gpu.machine import machine_of
from perfmodel.gpu.timing import waiting_time
from perfmodel.measurements.rows import Rows, rows_of, selected, with_resources
from perfmodel.measurements.table import kernel_rows


@dataclass(frozen=True)
class WaitingRows:
    """Measured rows of equal GEMMs waiting, of one dtype, arrays of shape (row,).

    Attributes
    ----------
    launches : Rows
        What runs, `degree` at a time; its times are those of all that wait [s].
    waiting : ndarray
        GEMMs that wait.
    """

    launches: Rows
    waiting: np.ndarray

    def __getitem__(self, index):
        return WaitingRows(self.launches[index], self.waiting[index])

    @property
    def seconds(self):
        """Measured time of all that wait, ndarray [s]."""
        return self.launches.seconds

    @property
    def labels(self):
        """Name of each row's GEMM, ndarray of str."""
        return self.launches.labels

    def predicted(self, device, values=None):
        """Predicted time of each row [s]; as `Rows.predicted`."""
        of = self.launches
        machine = machine_of(device, of.gemms.dtype, values)
        return waiting_time(
            machine, of.gemms, of.kernels, of.occupancy, self.waiting, of.degree, of.rounds)


def waiting_selected(table, device, kernel_files=None):
    """Rows of a table of waiting GEMMs that the model can predict, and others by reason.

    Parameters
    ----------
    table : DataFrame
        From `table.read_waiting`; rows of a library are left out.
    device : Gpu
    kernel_files : sequence of path, optional
        As in `with_resources`.

    Returns
    -------
    table : DataFrame
        With the columns of a measurement table besides.
    skipped : Counter of str
    """
    table = kernel_rows(table)
    table = table.assign(time_us=table["time_of_all_us"])
    even = table["waiting"] % table["concurrency_degree"] == 0
    rows, skipped = selected(with_resources(table[even], device, kernel_files), device)
    return rows, skipped + Counter({"waiting is no multiple of the degree": int((~even).sum())})


def waiting_rows_of(table, device, dtype):
    """The rows of one dtype of a table of waiting GEMMs as arrays.

    Parameters
    ----------
    table : DataFrame
        From `waiting_selected`, rows of this dtype only.
    device : Gpu
    dtype : str

    Returns
    -------
    WaitingRows
    """
    return WaitingRows(rows_of(table.assign(cache="warm"), device, dtype), table["waiting"].to_numpy())
