"""How far predictions of equal GEMMs that wait are from measurements."""

import numpy as np

from perfmodel.measurements.rows_waiting import waiting_rows_of, waiting_selected
from perfmodel.measurements.validate import errors, refuse_nothing_left, unseen_values
from perfmodel.units import US

#: What tells apart the ways in which GEMMs that wait are run.
PROTOCOL = ["waiting", "concurrency_degree", "rounds"]


def validate_waiting(table, device, kernel_files=None):
    """Compare a table of waiting GEMMs with the model.

    Parameters
    ----------
    table : DataFrame
        From `table.read_waiting`.
    device : Gpu
    kernel_files : sequence of path, optional
        As in `rows.with_resources`.

    Returns
    -------
    dict
        As `errors`, with ``waiting_mape_pct``, and ``by_protocol``: the same figures for each
        number waiting, degree and rounds, which it names.

    Raises
    ------
    ValueError
        If not one row can be predicted.
    """
    rows, skipped = waiting_selected(table, device, kernel_files)
    refuse_nothing_left(len(rows), skipped, device)
    compared = waiting_predictions(rows, device)
    report = {"device": device.name, "skipped": dict(skipped)} | errors(compared)
    report["waiting_mape_pct"] = report["mape_pct"]
    report["by_protocol"] = [
        dict(zip(PROTOCOL, map(int, protocol))) | errors(group)
        for protocol, group in compared.groupby(PROTOCOL)]
    return report


def waiting_predictions(table, device):
    """The table with ``predicted_us`` of all that wait, out of fold where the fit has seen a GEMM.

    Parameters
    ----------
    table : DataFrame
        From `rows_waiting.waiting_selected`.
    device : Gpu

    Returns
    -------
    DataFrame
    """
    predicted = np.empty(len(table))
    for dtype, group in table.groupby("dtype"):
        part = waiting_rows_of(group, device, dtype)
        seconds = np.empty(len(group))
        for at, values, _ in unseen_values(device, part.labels):
            seconds[at] = part[at].predicted(device, values)
        predicted[table.index.get_indexer(group.index)] = seconds / US
    return table.assign(predicted_us=predicted)
