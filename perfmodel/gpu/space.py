"""The kernel space of a device on many problems at many degrees, and the picks from it."""

from dataclasses import dataclass

import numpy as np

from perfmodel.gpu.kernels import Kernels, occupancy_of
from perfmodel.gpu.machine import machine_of
from perfmodel.gpu.timing import ROUNDS, concurrent_time
from perfmodel.problems import Gemms


@dataclass(frozen=True)
class Space:
    """Predicted times of every problem, kernel and degree.

    Attributes
    ----------
    gemms : Gemms
        Axis 0.
    kernels : Kernels
        Axis 1.
    degrees : int64 array
        Axis 2.
    seconds : float64 array, shape (problem, kernel, degree)
        `timing.concurrent_time`; NaN where a kernel does not fit [s].
    """

    gemms: Gemms
    kernels: Kernels
    degrees: np.ndarray
    seconds: np.ndarray

    def best(self, degree):
        """Index of each problem's fastest kernel at a degree: its GO-Kernel, int array (problem,).

        Of equals the first is taken, so that the answer never depends on the order of evaluation.

        Parameters
        ----------
        degree : int
            One of `degrees`.
        """
        at = self.seconds[:, :, np.flatnonzero(self.degrees == degree)[0]]
        return np.nanargmin(at, axis=1)


def evaluate(device, gemms, kernels, degrees, rounds=ROUNDS, values=None, cold=False):
    """Predicted time of every problem, kernel and degree.

    Parameters
    ----------
    device : Gpu
    gemms : Gemms, length problem
    kernels : Kernels, length kernel
    degrees : sequence of int, length degree
    rounds : int, optional
        Launches back to back on each branch.
    values : mapping of parameter name to float, optional
        In place of the device's fitted ones.
    cold : bool, optional
        Whether L2 is empty at the first launch of each branch.

    Returns
    -------
    Space

    Raises
    ------
    ValueError
        If the device lacks the dtype, a fact that is needed, or fitted parameters; or no kernel
        fits it.
    """
    degrees = np.asarray(degrees, np.int64)
    occupancy, _ = occupancy_of(device, kernels)
    if not (occupancy >= 1).any():
        raise ValueError(f"{device.name}: none of the {len(kernels)} kernels fits the device")
    machine = machine_of(device, gemms.dtype, values)
    seconds = np.empty((len(gemms), len(kernels), len(degrees)))
    # A problem at a time: temporaries of kernels x degrees stay in cache.
    for i in range(len(gemms)):
        seconds[i] = concurrent_time(
            machine, gemms[i : i + 1, None], kernels[:, None], occupancy[:, None], degrees, rounds,
            cold)
    return Space(gemms, kernels, degrees, seconds)
