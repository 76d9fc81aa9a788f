"""How far predictions are from measurements that no fit has seen."""

import numpy as np
import pandas as pd

from perfmodel.gpu.kernels import kernel_space
from perfmodel.gpu.parameters import checked
from perfmodel.gpu.predict import interval_factors
from perfmodel.gpu.space import evaluate
from perfmodel.measurements.calibrate import fold_of
from perfmodel.measurements.rows import GEMM, rows_of, selected, with_resources
from perfmodel.measurements.table import KERNEL, kernel_rows, library_rows
from perfmodel.problems import gemms
from perfmodel.units import US

#: Columns that make two rows of the same contest: the same GEMM on the same device.
CONTEST = ["dtype", *GEMM, "cache"]


def unseen_values(device, labels):
    """Parameter values for each GEMM that no fit with that GEMM has touched.

    A GEMM that the shipped fit has seen gets the values of the fold that left it out; any other
    gets the device's own.

    Parameters
    ----------
    device : Gpu
    labels : ndarray of str, shape (row,)

    Yields
    ------
    at : ndarray of bool, shape (row,)
    values : dict of parameter name to float, or None for the device's own
    fold : str, or None
    """
    seen = set(device.fit.get("gemms", ()))
    folds = device.fit.get("folds", {})
    group = np.array([fold_of(label) if label in seen and folds else -1 for label in labels])
    for fold in np.unique(group):
        known = str(fold) if fold >= 0 else None
        if known is not None and known not in folds:
            raise ValueError(f"{device.name}: [fit.folds] has no fold {known}")
        values = checked(folds[known], f"{device.name}, fold {known}") if known else None
        yield group == fold, values, known


def predictions(table, device):
    """The table with what the model says of each row, out of fold where the fit has seen it.

    Parameters
    ----------
    table : DataFrame
        From `rows.selected`.
    device : Gpu

    Returns
    -------
    DataFrame
        With ``predicted_us``, ``predicted_low_us`` and ``predicted_high_us``: the model's, and the
        ends of its stated 90 % interval (NaN where the fit states none).
    """
    times = np.empty((3, len(table)))
    for dtype, group in table.groupby("dtype"):
        rows = rows_of(group, device, dtype)
        found = np.empty((3, len(group)))
        for at, values, fold in unseen_values(device, rows.labels):
            seconds = rows[at].predicted(device, values)
            warm = interval_factors(device, rows.degree[at], fold)
            cold = interval_factors(device, rows.degree[at], fold, cold=True)
            low, high = np.where(rows.cold[at], cold, warm)
            found[:, at] = seconds, seconds * low, seconds * high
        times[:, table.index.get_indexer(group.index)] = found / US
    predicted, low, high = times
    return table.assign(predicted_us=predicted, predicted_low_us=low, predicted_high_us=high)


def errors(table):
    """Figures of merit of predicted against measured times.

    Parameters
    ----------
    table : DataFrame
        With ``predicted_us`` and ``time_us``.

    Returns
    -------
    dict
        ``rows``; mean, median and 90th percentile of the absolute error, and the mean error, all
        in % of the measured time; Spearman's rank correlation.
    """
    error = (table["predicted_us"] / table["time_us"] - 1.0).to_numpy() * 100
    size = np.abs(error)
    ranks = table[["predicted_us", "time_us"]].rank().to_numpy().T
    # Rows that all tie have no order to compare.
    spearman = np.corrcoef(ranks)[0, 1] if (np.ptp(ranks, axis=1) > 0).all() else np.nan
    return {
        "rows": len(table),
        "mape_pct": float(size.mean()),
        "median_ape_pct": float(np.median(size)),
        "bias_pct": float(error.mean()),
        "p90_ape_pct": float(np.quantile(size, 0.9)),
        "spearman": float(spearman),
    }


def regret(table, column):
    """How much slower than the best measured kernel a choice of kernels is, by degree.

    Parameters
    ----------
    table : DataFrame
    column : str
        The kernel with the least value in it is picked, for each GEMM and degree.

    Returns
    -------
    dict of str to float
        Degree to the geometric mean over GEMMs of time of the pick over best time.
    """
    usable = table[table[column].notna()]
    groups = usable.groupby([*CONTEST, "concurrency_degree"])
    picked = usable.loc[groups[column].idxmin(), "time_us"].to_numpy()
    best = groups["time_us"].min()
    log_ratio = pd.Series(np.log(picked / best.to_numpy()), index=best.index)
    means = np.exp(log_ratio.groupby("concurrency_degree").mean())
    return {str(degree): float(value) for degree, value in means.items()}


def with_isolated(table):
    """The table with ``isolated_us``: the measured time of the row's GEMM and kernel alone."""
    alone = table[table["concurrency_degree"] == 1]
    alone = alone.drop_duplicates([*CONTEST, *KERNEL])
    alone = alone[[*CONTEST, *KERNEL, "time_us"]].rename(columns={"time_us": "isolated_us"})
    return table.merge(alone, on=[*CONTEST, *KERNEL], how="left")


def library_errors(table, device):
    """Error of the best kernel of the whole space as an estimate of a library's time, in %.

    Parameters
    ----------
    table : DataFrame
        From `table.library_rows`.
    device : Gpu

    Returns
    -------
    DataFrame
        The rows that could be predicted, with ``predicted_us``.
    """
    parts = []
    for (dtype, rounds, state), group in table.groupby(["dtype", "rounds", "cache"]):
        distinct = group[GEMM].drop_duplicates()
        problems = gemms(*(distinct[name].to_numpy() for name in GEMM), dtype=dtype)
        degrees = np.unique(group["concurrency_degree"])
        kernels = kernel_space(device, dtype)
        best = np.empty((len(problems), len(degrees)))
        for at, values, _ in unseen_values(device, problems.labels):
            space = evaluate(
                device, problems[at], kernels, degrees, int(rounds), values, state == "cold")
            best[at] = np.nanmin(space.seconds, axis=1) / US
        known = pd.DataFrame(best, columns=degrees, index=pd.MultiIndex.from_frame(distinct))
        known = known.stack().rename("predicted_us")
        parts.append(group.join(known, on=[*GEMM, "concurrency_degree"]))
    return pd.concat(parts)


def validate(table, device, kernel_files=None):
    """Compare a measurement table with the model: the object of ``perfmodel validate --json``.

    Parameters
    ----------
    table : DataFrame
        From `table.read_measurements`.
    device : Gpu
    kernel_files : sequence of path, optional
        As in `rows.with_resources`.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        If not one row can be predicted.
    """
    rows, skipped = selected(with_resources(kernel_rows(table), device, kernel_files), device)
    library, library_skipped = selected_library(library_rows(table), device)
    skipped = dict(skipped) | library_skipped
    refuse_nothing_left(len(rows) + len(library), skipped, device)
    report = {"device": device.name, "rows": len(rows), "skipped": skipped}
    if not rows.empty:
        report |= _kernel_report(with_isolated(predictions(rows, device)))
    if not library.empty:
        report["library_rows"] = len(library)
        report["library_mape_pct"] = errors(library_errors(library, device))["mape_pct"]
    return report


def refuse_nothing_left(left, skipped, device):
    """Raise `ValueError` if not one row is left, with what was skipped."""
    if left == 0:
        reasons = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
        raise ValueError(f"not one row can be predicted for {device.name}"
                         f" (skipped: {reasons or 'rows of a library'})")


def selected_library(table, device):
    """Library rows of this device in a dtype that it has, and how many others, by reason."""
    here = table[table["device"] == device.name]
    usable = here[here["dtype"].isin(list(device.matrix_flop_per_clock_per_compute_unit))]
    counts = {
        "library row of another device": len(table) - len(here),
        "library row of a dtype the device lacks": len(here) - len(usable),
    }
    return usable, {reason: count for reason, count in counts.items() if count}


def _kernel_report(table):
    by_degree = {
        str(degree): errors(group) for degree, group in table.groupby("concurrency_degree")}
    inside = table["time_us"].between(table["predicted_low_us"], table["predicted_high_us"])
    stated = table["predicted_low_us"].notna()
    return errors(table) | {
        "estimated_resources": int(
            table["registers_per_thread"].isna().sum() if "registers_per_thread" in table
            else len(table)),
        "by_degree": by_degree,
        "regret": regret(table, "predicted_us"),
        "regret_isolated_best": regret(table, "isolated_us"),
        "interval_coverage": float(inside[stated].mean()) if stated.any() else None,
    }
