"""One GEMM on one device: the kernels to run alone and together, and why."""

from dataclasses import dataclass

import numpy as np

from perfmodel.equations.occupancy import LIMITS
from perfmodel.equations.waves import waves
from perfmodel.gpu.breakdown import breakdown
from perfmodel.gpu.kernels import KERNEL, Kernels, kernel_space, occupancy_of
from perfmodel.gpu.machine import machine_of
from perfmodel.gpu.space import evaluate
from perfmodel.gpu.timing import ROUNDS, costs_of
from perfmodel.units import US


@dataclass(frozen=True)
class Prediction:
    """What the model says of one kernel, alone and at a degree.

    Attributes
    ----------
    kernel : Kernels
        Of length 1.
    isolated_seconds, concurrent_seconds : float
        Time alone; time of one launch on each branch [s].
    interval_seconds : tuple of float
        Ends of the stated 90 % interval of the concurrent time [s]; NaN where none is stated: the
        fit states none, or the query lies outside what it saw.
    occupancy : int
        Workgroups on a compute unit.
    occupancy_limit : str
        What limits them, one of `equations.occupancy.LIMITS`.
    workgroups : int
        Of one launch.
    waves : float
        That all branches' launches need together.
    terms : dict of str to float
        Breakdown of the concurrent time [s].
    outside : tuple of str
        Axes on which the query lies outside the calibrated range.
    """

    kernel: Kernels
    isolated_seconds: float
    concurrent_seconds: float
    interval_seconds: tuple
    occupancy: int
    occupancy_limit: str
    workgroups: int
    waves: float
    terms: dict
    outside: tuple

    @property
    def binds(self):
        """The largest term of the breakdown."""
        return max(self.terms, key=self.terms.get)


@dataclass(frozen=True)
class Advice:
    """The kernels for one GEMM at one degree, and what running together is worth.

    Attributes
    ----------
    isolated_best, go_kernel : Prediction
        The kernel fastest alone (default concurrency runs it), and the one fastest together.
    degree : int
    """

    isolated_best: Prediction
    go_kernel: Prediction
    degree: int

    @property
    def sequential_seconds(self):
        """Time of the GEMMs one after the other, each with the isolated best [s]."""
        return self.degree * self.isolated_best.isolated_seconds

    @property
    def over_sequential(self):
        """Speed-up of the GO-Kernel at the degree over one after the other."""
        return self.sequential_seconds / self.go_kernel.concurrent_seconds

    @property
    def over_default(self):
        """Speed-up of the GO-Kernel over the isolated best, both at the degree."""
        return self.isolated_best.concurrent_seconds / self.go_kernel.concurrent_seconds

    @property
    def default_over_sequential(self):
        """Speed-up of the isolated best at the degree over one after the other."""
        return self.sequential_seconds / self.isolated_best.concurrent_seconds


def advise(device, gemm, degree, kernels=None, rounds=ROUNDS, cold=False):
    """The isolated-best kernel and the GO-Kernel of one GEMM at a degree.

    Parameters
    ----------
    device : Gpu
    gemm : Gemms, length 1
    degree : int
    kernels : Kernels, optional
        Candidates; those of `kernels.kernel_space`, if None.
    rounds : int, optional
    cold : bool, optional
        As in `space.evaluate`.

    Returns
    -------
    Advice

    Raises
    ------
    ValueError
        As in `space.evaluate`.

    Examples
    --------
    >>> from perfmodel import load_device, parse_gemm
    >>> advice = advise(load_device("h200"), parse_gemm("512x1024x2048"), 8)
    >>> advice.over_default > 1.1
    True
    """
    kernels = kernel_space(device, gemm.dtype) if kernels is None else kernels
    space = evaluate(device, gemm, kernels, np.unique([1, degree]), rounds, cold=cold)
    picks = (kernels[space.best(at)] for at in (1, degree))
    return Advice(*(predict(device, gemm, pick, degree, rounds, cold) for pick in picks), degree)


def predict(device, gemm, kernel, degree, rounds=ROUNDS, cold=False):
    """What the model says of one kernel on one GEMM.

    Parameters
    ----------
    device : Gpu
    gemm : Gemms, length 1
    kernel : Kernels, length 1
    degree : int
    rounds : int, optional
    cold : bool, optional
        As in `space.evaluate`.

    Returns
    -------
    Prediction

    Raises
    ------
    ValueError
        As in `space.evaluate`.
    """
    space = evaluate(device, gemm, kernel, [1, degree], rounds, cold=cold)
    isolated, together = space.seconds[0, 0]
    occupancy, limit = occupancy_of(device, kernel)
    machine = machine_of(device, gemm.dtype)
    workgroups = costs_of(machine, gemm, kernel).workgroups
    terms = breakdown(machine, gemm, kernel, occupancy, degree, rounds, cold)
    outside = outside_of(device, gemm, kernel, degree, rounds, cold)
    # Residuals of the calibrated range say nothing of a query beyond it.
    low, high = (np.nan, np.nan) if outside else interval_factors(device, degree, cold=cold)
    return Prediction(
        kernel=kernel,
        isolated_seconds=float(isolated),
        concurrent_seconds=float(together),
        interval_seconds=(float(together * low), float(together * high)),
        occupancy=int(occupancy[0]),
        occupancy_limit=LIMITS[limit[0]],
        workgroups=int(workgroups[0]),
        waves=float(waves(degree * workgroups, device.compute_units, occupancy)[0]),
        terms={name: float(term[0]) for name, term in terms.items()},
        outside=outside,
    )


def interval_factors(device, degree, fold=None, cold=False):
    """Factors on a predicted time that give the ends of the stated 90 % interval.

    Parameters
    ----------
    device : Gpu
    degree : array_like of int
    fold : str, optional
        Take the interval that this fold's own residuals had no part in.
    cold : bool, optional
        Whether L2 is empty at the start.

    Returns
    -------
    low, high : ndarray
        From the calibration's unseen residuals at that degree, interpolated in its logarithm; NaN
        if the device's fit states none.
    """
    state = "cold_" if cold else ""
    stated = device.fit.get(f"{state}interval")
    if fold is not None:
        stated = device.fit.get(f"{state}fold_intervals", {}).get(fold)
    degree = np.asarray(degree, float)
    if not stated:
        return np.full(degree.shape, np.nan), np.full(degree.shape, np.nan)
    known = np.log2(stated["degrees"])
    return tuple(np.interp(np.log2(degree), known, stated[end]) for end in ("low", "high"))


def outside_of(device, gemm, kernel, degree, rounds=ROUNDS, cold=False):
    """Axes on which a query lies outside what the device's parameters were fitted on.

    Parameters
    ----------
    device : Gpu
    gemm : Gemms, length 1
    kernel : Kernels, length 1
    degree : int
    rounds : int, optional
        Of no consequence at degree 1.
    cold : bool, optional

    Returns
    -------
    tuple of str
        Such as ``k 16384 (calibrated 128 to 8192)``.
    """
    values = {name: int(getattr(gemm, name)[0]) for name in ("m", "n", "k", "batch")}
    values |= {name: int(getattr(kernel, name)[0]) for name in KERNEL}
    values["concurrency_degree"] = degree
    values |= {"rounds": rounds} if degree > 1 and not cold else {}
    found = []
    for name, (low, high) in device.fit.get("ranges", {}).items():
        if name in values and not low <= values[name] <= high:
            found.append(f"{name} {values[name]} (calibrated {low} to {high})")
    if cold and device.fitted["cold_start_share"].standard_error == 0:  # kept its start value
        found.append("cold L2 (calibrated warm)")
    elif cold and rounds > 1:
        found.append(f"rounds {rounds} from a cold L2 (calibrated 1)")
    dtypes = device.fit.get("dtypes", [gemm.dtype])
    if gemm.dtype not in dtypes:
        found.append(f"dtype {gemm.dtype} (calibrated {', '.join(dtypes)})")
    return tuple(found)


def as_record(prediction):
    """A prediction as a plain dictionary with units in its keys, for JSON.

    Parameters
    ----------
    prediction : Prediction

    Returns
    -------
    dict
    """
    kernel = prediction.kernel
    low, high = prediction.interval_seconds
    stated = np.isfinite(low)
    return {
        "kernel": kernel.labels[0],
        **{name: int(getattr(kernel, name)[0]) for name in KERNEL},
        "resources": "compiler" if kernel.reported[0] else "estimated",
        "registers_per_thread": int(np.ceil(kernel.registers_per_thread[0])),
        "lds_bytes": int(kernel.lds_bytes[0]),
        "workgroups_per_cu": prediction.occupancy,
        "occupancy_limit": prediction.occupancy_limit,
        "workgroups": prediction.workgroups,
        "waves": prediction.waves,
        "isolated_time_us": prediction.isolated_seconds / US,
        "concurrent_time_us": prediction.concurrent_seconds / US,
        "interval_90_us": [low / US, high / US] if stated else None,
        "binds": prediction.binds,
        "breakdown_us": {name: term / US for name, term in prediction.terms.items()},
        "outside_calibrated_range": list(prediction.outside),
    }
