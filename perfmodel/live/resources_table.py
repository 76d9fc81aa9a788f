"""The table of what compiler and driver report of kernels, kept beside a measured table."""

from pathlib import Path

import pandas as pd

from perfmodel.gpu.kernels import KERNEL
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
        If `path` exists and is no kernel table.
    """
    now = pd.DataFrame(rows)
    numbers = [name for name in now if name != "dtype"]
    now = now.astype(dict.fromkeys(numbers, "Int64"))
    if not Path(path).exists():
        return now
    whole = pd.concat([read_kernels(path), now], ignore_index=True)
    return whole.drop_duplicates(["dtype", *KERNEL], keep="last")[list(now)]
