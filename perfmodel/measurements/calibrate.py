"""Fit the parameters of the GPU model to measured times, with cross-validation by GEMM."""

import datetime
import zlib

import numpy as np
from scipy.optimize import least_squares
from tqdm import tqdm

from perfmodel.devices import Fitted, with_fit
from perfmodel.gpu.parameters import PARAMETERS, start_values
from perfmodel.measurements.rows import MemberRows, Rows
from perfmodel.measurements.rows_waiting import WaitingRows

#: Parts in which GEMMs are left out in turn.
FOLDS = 5

#: Relative error beyond which a row's pull is bounded (soft L1).
ROBUST_SCALE = 0.08

#: Share of unseen rows that the stated interval is meant to cover.
COVERAGE = 0.90

#: Most steps of a fit; it needs about 10 to 20.
MOST_STEPS = 200

#: Fewest rows and GEMMs that can carry the parameters.
LEAST_ROWS = 500
LEAST_GEMMS = 20

#: Parameters that only rows of different GEMMs determine; fitted to those, with the others fixed.
OF_MEMBERS = ("member_start_s", "member_clock_drop_share")

#: Parameters that show only where graphs differ in launches, and the gap, of which equal numbers
#: of launches tell no more than its sum with a share of the start. Tables of GEMMs that wait hold
#: the fastest kernels only, so nothing else is fitted to them.
OF_WAITING = ("graph_start_s", "graph_interval_s")
OF_GRAPHS = ("launch_gap_s", *OF_WAITING)

#: What only rows of a cold L2 determine.
OF_COLD = ("cold_start_share",)
OF_EQUALS = tuple(name for name in PARAMETERS if name not in OF_MEMBERS + OF_WAITING + OF_COLD)


def fold_of(label):
    """Fold in which a GEMM is left out: by its name, so that it never moves.

    Parameters
    ----------
    label : str
        As `Gemms.labels`.

    Examples
    --------
    >>> fold_of("512x1024x2048") == fold_of("512x1024x2048")
    True
    """
    return zlib.crc32(label.encode()) % FOLDS


def fit(rows, device, start, free, watch=None):
    """Parameters that fit measured rows best: least squares on log time, robust, bounded.

    Parameters
    ----------
    rows : list of Rows, WaitingRows or MemberRows
    device : Gpu
    start : mapping of parameter name to float
        Those that are not free keep this value.
    free : sequence of str
        Names of the parameters to fit.
    watch : callable, optional
        Called once for each evaluation of the model.

    Returns
    -------
    values : dict of parameter name to float
    jacobian : ndarray, shape (row, parameter)
        Of the log of the predicted time to the log of the parameters, at the solution, scaled by
        the loss as `scipy.optimize.least_squares` does.
    residuals : ndarray, shape (row,)
        Log of predicted over measured time.

    Raises
    ------
    ValueError
        If the fit does not converge.
    """
    log_measured = np.log(np.concatenate([part.seconds for part in rows]))

    def residuals(logs):
        if watch:
            watch()
        values = dict(start) | dict(zip(free, np.exp(logs)))
        predicted = np.concatenate([part.predicted(device, values) for part in rows])
        return np.log(predicted) - log_measured

    bounds = [(PARAMETERS[name].lower, PARAMETERS[name].upper) for name in free]
    lower, upper = np.log(bounds).T
    inside = np.clip(np.log([start[name] for name in free]), lower + 1e-9, upper - 1e-9)
    solved = least_squares(
        residuals, inside, bounds=(lower, upper), loss="soft_l1", f_scale=ROBUST_SCALE,
        ftol=1e-6, xtol=1e-6, max_nfev=MOST_STEPS)
    if solved.status < 1 or not np.isfinite(solved.x).all():
        raise ValueError(f"the fit did not converge in {MOST_STEPS} steps")
    values = dict(start) | dict(zip(free, np.exp(solved.x).tolist()))
    return values, solved.jac, residuals(solved.x)


def standard_errors(values, free, jacobian, residuals, labels):
    """Standard errors of fitted values, robust to rows of one GEMM erring together.

    .. math:: (J^T J)^{-1} \\left(\\sum_g s_g s_g^T\\right) (J^T J)^{-1}, \\qquad
              s_g = \\sum_{i \\in g} J_i^T r_i (1 + r_i^2 / c^2)^{1/4}

    The last factor is the soft L1 loss's: `least_squares` returns the Jacobian scaled by
    (1 + z)^(-3/4), z = r^2 / c^2, and the slope of the loss is r (1 + z)^(-1/2).

    Parameters
    ----------
    values, free, jacobian, residuals
        As in `fit`.
    labels : ndarray of str, shape (row,)
        Name of each row's GEMM.

    Returns
    -------
    dict of parameter name to float

    References
    ----------
    .. [1] K.-Y. Liang, S. Zeger, "Longitudinal data analysis using generalized linear models",
       Biometrika 73(1), 1986: the cluster-robust (sandwich) covariance.
    """
    _, group = np.unique(labels, return_inverse=True)
    scores = np.zeros((group.max() + 1, jacobian.shape[1]))
    pull = residuals * (1 + (residuals / ROBUST_SCALE) ** 2) ** 0.25
    np.add.at(scores, group, jacobian * pull[:, None])
    bread = np.linalg.pinv(jacobian.T @ jacobian, hermitian=True)
    variance = np.diag(bread @ (scores.T @ scores) @ bread)
    # Rounding can leave a negative, or not quite 0, where the rows do not determine a direction.
    spread = np.sqrt(np.maximum(variance, 0.0)) * jacobian.any(axis=0)
    return {name: float(values[name] * error) for name, error in zip(free, spread)}


def intervals(degrees, log_ratio):
    """Factors on a predicted time between which `COVERAGE` of unseen rows lie, by degree.

    Parameters
    ----------
    degrees : ndarray, shape (row,)
    log_ratio : ndarray, shape (row,)
        Log of measured over predicted time, out of fold.

    Returns
    -------
    dict
        Lists ``degrees``, ``low``, ``high``.
    """
    found = np.unique(degrees)
    tail = (1 - COVERAGE) / 2
    ends = [np.exp(np.quantile(log_ratio[degrees == c], [tail, 1 - tail])) for c in found]
    low, high = np.transpose(ends).round(4).tolist()
    return {"degrees": found.tolist(), "low": low, "high": high}


def calibrate(rows, device, files, progress=False):
    """The device with parameters fitted to measured rows, and the provenance of the fit.

    Parameters
    ----------
    rows : list of Rows, WaitingRows or MemberRows
        One for each dtype and table; at least one `Rows`.
    device : Gpu
    files : sequence of str
        Where the rows came from.
    progress : bool, optional
        Whether to show a bar on stderr.

    Returns
    -------
    Gpu

    Raises
    ------
    ValueError
        If there are too few rows or GEMMs.
    """
    equal = [part for part in rows if isinstance(part, Rows)]
    waiting = [part for part in rows if isinstance(part, WaitingRows)]
    mixed = [part for part in rows if isinstance(part, MemberRows)]
    # A cold L2 shows one parameter; the others need rows of a warm one.
    labels = np.concatenate([part.labels[~part.cold] for part in equal] or [[]])
    distinct = sorted({label for part in equal for label in part.labels})
    if len(labels) < LEAST_ROWS or len(set(labels)) < LEAST_GEMMS:
        raise ValueError(
            f"{', '.join(files)}: {len(labels)} rows of {len(set(labels))} GEMMs with a warm L2 that"
            f" the model can predict: a fit needs at least {LEAST_ROWS} rows of {LEAST_GEMMS} GEMMs"
        )
    with tqdm(desc="calibrate", unit=" evaluations", disable=not progress) as bar:
        values, errors = _fitted(equal, waiting, mixed, device, start_values(), bar.update)
        folds = {}
        for fold in range(FOLDS):
            left = (_left(part, fold) for part in (equal, waiting, mixed))
            folds[str(fold)], _ = _fitted(*left, device, values, bar.update)
    provenance = {
        "files": list(files),
        "rows": sum(len(part.seconds) for part in rows),
        "dtypes": [part.gemms.dtype for part in equal],
        "date": datetime.date.today().isoformat(),
        "method": "least squares on log time, soft L1; standard errors clustered by GEMM;"
                  f" {FOLDS} folds by GEMM",
        # What the rows say nothing of keeps its start value, with no error.
        "not_determined": [name for name in PARAMETERS if errors.get(name, 0) == 0],
        **_unseen_errors(equal, device, folds),
        "ranges": _ranges(equal),
        "gemms": distinct,
        "folds": {fold: {name: _short(value) for name, value in found.items()}
                  for fold, found in folds.items()},
    }
    fitted = {
        name: Fitted(_short(values[name]), _short(errors.get(name, 0.0)), parameter.unit)
        for name, parameter in PARAMETERS.items()}
    return with_fit(device, fitted, provenance)


def _unseen_errors(equal, device, folds):
    """Mean error of GEMMs left out of the fit, and the intervals that hold their times."""
    unseen = np.concatenate([np.log(part.seconds / unseen_seconds(part, device, folds))
                             for part in equal])
    degrees = np.concatenate([part.degree for part in equal])
    fold = np.concatenate([[fold_of(label) for label in part.labels] for part in equal])
    cold = np.concatenate([part.cold for part in equal])
    found = {}
    for name, state in (("", ~cold), ("cold_", cold)):
        if state.any():
            found |= {
                f"{name}unseen_mape_pct": round(
                    float(np.abs(np.expm1(-unseen[state])).mean() * 100), 2),
                f"{name}interval": intervals(degrees[state], unseen[state]),
                # Without the fold's own residuals: what its GEMMs may be judged by.
                f"{name}fold_intervals": {
                    str(i): intervals(degrees[state & (fold != i)], unseen[state & (fold != i)])
                    for i in range(FOLDS)},
            }
    return found


def unseen_seconds(part, device, folds):
    """Predicted time of each row with the parameters of the fold that left its GEMM out [s].

    Parameters
    ----------
    part : Rows, WaitingRows or MemberRows
    device : Gpu
    folds : mapping of fold, as text, to parameter values
    """
    seconds = np.empty(len(part.seconds))
    fold = np.array([fold_of(label) for label in part.labels])
    for number in np.unique(fold):
        at = fold == number
        seconds[at] = part[at].predicted(device, folds[str(number)])
    return seconds


def _fitted(equal, waiting, mixed, device, start, watch):
    """Values and standard errors: of equal GEMMs first, then of others with those fixed."""
    values, errors = start, {}
    warm = [part[~part.cold] for part in equal]
    cold = [part[part.cold] for part in equal]
    graphs = warm + waiting if waiting else []
    for rows, free in (
            (warm, OF_EQUALS), (graphs, OF_GRAPHS), (cold, OF_COLD), (mixed, OF_MEMBERS)):
        if sum(len(part.seconds) for part in rows):
            values, jacobian, residuals = fit(rows, device, values, free, watch)
            labels = np.concatenate([part.labels for part in rows])
            errors |= standard_errors(values, free, jacobian, residuals, labels)
    return values, errors


def _left(rows, fold):
    """What stays of each part when a fold is left out."""
    return [part[np.array([fold_of(label) != fold for label in part.labels])] for part in rows]


def _short(value):
    return float(f"{value:.5g}")


def _ranges(rows):
    """Least and greatest value of each axis that the fit saw."""
    columns = {
        name: np.concatenate([getattr(part.gemms, name) for part in rows]) for name in "mnk"}
    columns |= {
        name: np.concatenate([getattr(part.kernels, name) for part in rows])
        for name in ("macro_tile_m", "macro_tile_n", "depth_u", "stages", "warps", "split_k")}
    columns["batch"] = np.concatenate([part.gemms.batch for part in rows])
    columns["rounds"] = np.concatenate([part.rounds[~part.cold] for part in rows])
    columns["concurrency_degree"] = np.concatenate([part.degree for part in rows])
    return {name: [int(column.min()), int(column.max())] for name, column in columns.items()}
