"""The table of what compiler and driver report of kernels, kept beside a measured table."""

from pathlib import Path

import numpy as np
import pandas as pd

from perfmodel.gpu.kernels import KERNEL, kernel_label, kernels_from, occupancy_of
from perfmodel.measurements.table import read_kernels


def joined_resources(path, rows):
    """The rows, and those of an earlier table on other kernels or dtypes.

    Parameters
    ----------
    path : str or Path
        The earlier table; need not exist.
    rows : list of dict
        With the columns of `KERNEL` and ``dtype``.

    Returns
    -------
    DataFrame

    Raises
    ------
    ValueError
        If `path` exists and is no kernel table, or one that does not tell the dtype.
    """
    now = pd.DataFrame(rows)
    numbers = [name for name in now if name != "dtype"]
    now = now.astype(dict.fromkeys(numbers, "Int64"))
    if not Path(path).exists():
        return now
    before = read_kernels(path)
    if "dtype" not in before:
        raise ValueError(f"{path}: another table: it lacks the column dtype; give a new name")
    whole = pd.concat([before, now], ignore_index=True)
    return whole.drop_duplicates(["dtype", *KERNEL], keep="last")[list(now)]


def occupancy_differs(device, rows):
    """Kernels whose occupancy by the rules is not the driver's, dict of label to both.

    Parameters
    ----------
    device : Gpu
    rows : list of dict
        Of one dtype, with the resources of a kernel table.

    Returns
    -------
    dict of str to str
        Empty too where the device lacks what the rules need.
    """
    if not rows:
        return {}
    table = {name: np.array([row[name] for row in rows]) for name in (
        *KERNEL, "registers_per_thread", "lds_bytes", "workgroups_per_cu")}
    try:
        ours, _ = occupancy_of(device, kernels_from(table, rows[0]["dtype"]))
    except ValueError:
        return {}
    labels = [kernel_label([row[name] for name in KERNEL]) for row in rows]
    return {
        label: f"{int(mine)} by the rules, {theirs} by the driver"
        for label, mine, theirs in zip(labels, ours, table["workgroups_per_cu"]) if mine != theirs}
