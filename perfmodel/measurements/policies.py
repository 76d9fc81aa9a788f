"""What ways of running GEMMs that wait are worth, by measured times: the model's picks among them.

Every time is a measured one; the model only chooses. It has not seen the GEMM: where the device's
fit has, the parameters are those of the fold that left it out.
"""

import pandas as pd

from perfmodel.equations.metrics import geometric_mean
from perfmodel.gpu.kernels import kernel_label
from perfmodel.measurements.rows import GEMM
from perfmodel.measurements.rows_waiting import waiting_selected
from perfmodel.measurements.table import KERNEL, kernel_rows, library_rows
from perfmodel.measurements.validate_waiting import waiting_predictions

#: Columns that make two rows of the same contest, as far as a table has them.
CONTEST = ["dtype", *GEMM, "trans_a", "trans_b", "waiting", "rounds"]

#: In the order of a table; each is explained in `policies`.
POLICIES = ("sequential", "default", "library_sequential", "library", "go", "dynamic", "best")


def policies(table, device, kernel_files=None):
    """Measured time of each policy for each GEMM, number waiting and rounds.

    ``sequential``: one after the other with the kernel that is fastest so. ``default``: all at
    once with that kernel. ``library_sequential`` and ``library``: one after the other and all at
    once with the vendor's library. ``go``: all at once with the kernel that the model takes for
    fastest so. ``dynamic``: degree and kernel as the model chooses them. ``best``: the fastest
    degree and kernel measured, the library's apart.

    Parameters
    ----------
    table : DataFrame
        From `table.read_waiting`.
    device : Gpu
    kernel_files : sequence of path, optional
        As in `rows.with_resources`.

    Returns
    -------
    DataFrame
        One row a contest in which the kernel fastest one by one was also run all at once, and the
        library so as well, if it was in any: ``measured_NAME_us`` of each policy (NaN for a
        library not measured),
        ``measured_go_best_us`` (the fastest measured all at once), ``modelled_go_us``,
        ``modelled_dynamic_us``, and the picks.

        No row if there is no such contest.
    """
    rows, _ = waiting_selected(table, device, kernel_files)
    rows = waiting_predictions(rows, device) if len(rows) else rows
    key = [name for name in CONTEST if name in table]
    library = library_rows(table[table["device"] == device.name])
    alone, together = (ends.groupby(key)["time_of_all_us"].min() for ends in _ends(library))
    # Also of kernels that the model leaves out: it must answer for what it misses.
    measured = kernel_rows(table[table["device"] == device.name]).groupby(key)
    found = [
        dict(zip(key, contest)) | _measured(measured.get_group(contest), group) | {
            "measured_library_sequential_us": alone.get(contest, float("nan")),
            "measured_library_us": together.get(contest, float("nan"))}
        for contest, group in (rows.groupby(key) if len(rows) else ())
        if _complete(measured.get_group(contest)) and len(_ends(group)[1])]
    found = pd.DataFrame(found)
    # All policies are compared on the same GEMMs; one whose library rows are lacking was cut off.
    timed = [f"measured_{name}_us" for name in POLICIES]
    return found.dropna(subset=[name for name in timed if name in found and found[name].notna().any()])


def _complete(group):
    alone, together = _ends(group)
    if alone.empty:
        return False
    isolated = alone.loc[alone["time_of_all_us"].idxmin()]
    return bool((together[KERNEL] == isolated[KERNEL]).all(axis=1).any())


def _ends(group):
    """The rows of a contest that ran one by one, and those that ran all at once."""
    degree = group["concurrency_degree"]
    return group[degree == 1], group[degree == group["waiting"]]


def _measured(group, predicted):
    """Times of the policies in one contest [us]; the model picks among the predicted rows."""
    alone, together = _ends(group)
    isolated = alone.loc[alone["time_of_all_us"].idxmin()]
    default = together[(together[KERNEL] == isolated[KERNEL]).all(axis=1)]
    choices = _ends(predicted)[1]
    go = choices.loc[choices["predicted_us"].idxmin()]
    dynamic = predicted.loc[predicted["predicted_us"].idxmin()]
    return {
        "measured_sequential_us": isolated["time_of_all_us"],
        "measured_default_us": default["time_of_all_us"].min(),
        "measured_go_us": go["time_of_all_us"],
        "measured_go_best_us": together["time_of_all_us"].min(),
        "measured_dynamic_us": dynamic["time_of_all_us"],
        "measured_best_us": group["time_of_all_us"].min(),
        "modelled_go_us": go["predicted_us"],
        "modelled_dynamic_us": dynamic["predicted_us"],
        "dynamic_degree": int(dynamic["concurrency_degree"]),
        "dynamic_kernel": kernel_label(dynamic[KERNEL].astype(int)),
        "go_kernel": kernel_label(go[KERNEL].astype(int)),
    }


def summary(table):
    """Geometric means over GEMMs, one dict for each number waiting and rounds.

    Parameters
    ----------
    table : DataFrame
        From `policies`.

    Returns
    -------
    list of dict
        ``waiting``, ``rounds``, ``gemms``; ``over_sequential`` and ``over_default``, each a dict
        of policy to speed-up; ``regret_go`` (over the best kernel all at once) and
        ``regret_dynamic`` (over the best degree and kernel); ``prediction_mape_pct``, a dict of
        pick to the error of the time predicted for it.
    """
    if table.empty:
        return []
    return [
        {"waiting": int(waiting), "rounds": int(rounds), "gemms": len(group)} | _summary(group)
        for (waiting, rounds), group in table.groupby(["waiting", "rounds"])]


def _summary(group):
    times = {name: group[f"measured_{name}_us"] for name in (*POLICIES, "go_best")}
    known = [name for name in POLICIES if times[name].notna().any()]
    speed_ups = {
        f"over_{base}": {name: _mean(times[base] / times[name]) for name in known}
        for base in ("sequential", "default")}
    errors = {
        name: 100 * float((group[f"modelled_{name}_us"] / times[name] - 1).abs().mean())
        for name in ("go", "dynamic")}
    return speed_ups | {
        "regret_go": _mean(times["go"] / times["go_best"]),
        "regret_dynamic": _mean(times["dynamic"] / times["best"]),
        "prediction_mape_pct": errors,
    }


def _mean(ratios):
    return float(geometric_mean(ratios))
