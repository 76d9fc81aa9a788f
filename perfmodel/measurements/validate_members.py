"""How far predictions of different GEMMs together are from measurements."""

from collections import Counter

import numpy as np

from perfmodel.measurements.rows import member_rows_of, members_selected
from perfmodel.measurements.validate import errors, refuse_nothing_left, unseen_values
from perfmodel.units import US


def validate_members(table, members, device, kernel_files=None):
    """Compare a table of different GEMMs with the model.

    Parameters
    ----------
    table, members
        From `table.read_members`.
    device : Gpu
    kernel_files : sequence of path, optional
        As in `rows.with_resources`.

    Returns
    -------
    dict
        As `errors`, with ``pair_mape_pct`` or, of more members, ``mixed_mape_pct``; and
        ``by_carveout`` where the table tells it.

    Raises
    ------
    ValueError
        If not one row can be predicted.
    """
    rows, sides, skipped = members_selected(table, members, device, kernel_files)
    refuse_nothing_left(len(rows), skipped, device)
    predicted, measured = np.empty(len(rows)), np.empty(len(rows))
    for dtype, group in rows.groupby("dtype"):
        at = rows.index.get_indexer(group.index)
        part = member_rows_of(group, [side.loc[group.index] for side in sides], device, dtype)
        seconds = np.empty(len(group))
        for some, values, _ in unseen_values(device, part.labels):
            seconds[some] = part[some].predicted(device, values)
        predicted[at], measured[at] = seconds / US, part.seconds / US
    compared = rows.assign(predicted_us=predicted, time_us=measured)
    report = {"device": device.name, "members": members, "skipped": dict(skipped)}
    report |= errors(compared)
    report["pair_mape_pct" if members == 2 else "mixed_mape_pct"] = report["mape_pct"]
    if "carveout_pct" in rows:
        report["by_carveout"] = {
            str(carveout): errors(group) for carveout, group in compared.groupby("carveout_pct")}
    return report


def merged(reports):
    """One report of several tables: equal GEMMs first, other tables under their kind.

    Parameters
    ----------
    reports : sequence of dict
        At most one of `validate`, others of `validate_members` and `validate_waiting`.

    Returns
    -------
    dict
    """
    if len(reports) == 1:
        return reports[0]
    whole = {}
    if all(_kind(report) for report in reports):
        rows = sum(report["rows"] for report in reports)
        skipped = sum((Counter(report["skipped"]) for report in reports), Counter())
        mean = sum(report["rows"] * report["mape_pct"] for report in reports) / rows
        whole = {"rows": rows, "skipped": dict(skipped), "mape_pct": mean}
    for report in reports:
        kind = _kind(report)
        if not kind:
            whole |= report
            continue
        known = whole.setdefault(f"{kind}_tables", [])
        known.append(report)
        rows = sum(part["rows"] for part in known)
        whole[f"{kind}_mape_pct"] = sum(p["rows"] * p["mape_pct"] for p in known) / rows
    return whole


def _kind(report):
    """Of the table that a report is of; empty if of equal GEMMs together."""
    if "members" in report:
        return "pair" if report["members"] == 2 else "mixed"
    return "waiting" if "by_protocol" in report else ""
