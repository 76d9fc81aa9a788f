"""How far two measurements of the same rows are apart."""

import pandas as pd

from perfmodel.measurements.rows import GEMM
from perfmodel.measurements.table import KERNEL

_KEY = ["device", "library", "dtype", *GEMM, *KERNEL, "concurrency_degree", "rounds"]


def repeats(first, again):
    """Rows that both tables have, with the change of their time.

    Parameters
    ----------
    first, again : DataFrame
        From `table.read_measurements`.

    Returns
    -------
    DataFrame
        The rows of `again`, with ``first_us`` and ``change_pct``.
    """
    keys = [name for name in (*_KEY, "trans_a", "trans_b", "cache") if name in first and name in again]
    known = first[[*keys, "time_us"]].rename(columns={"time_us": "first_us"})
    both = again.merge(known, on=keys)
    return both.assign(change_pct=100 * (both["time_us"] / both["first_us"] - 1))


def repeat_errors(both):
    """Figures of the changes, of all rows and by degree, DataFrame.

    Parameters
    ----------
    both : DataFrame
        From `repeats`.

    Returns
    -------
    DataFrame
        Index ``all`` and each degree; ``rows``, ``mean_abs_pct``, ``median_pct`` (signed),
        ``p95_abs_pct``.
    """
    groups = {"all": both} | {str(d): g for d, g in both.groupby("concurrency_degree")}
    return pd.DataFrame({
        name: {
            "rows": len(group),
            "mean_abs_pct": group["change_pct"].abs().mean(),
            "median_pct": group["change_pct"].median(),
            "p95_abs_pct": group["change_pct"].abs().quantile(0.95),
        } for name, group in groups.items()}).T
