"""Measured tables: one function a kind, each checks what it reads and names what it refuses.

Columns and units: data/measurements/README.md. Integers are int64; tile columns of a measurement
table are pandas' nullable Int64, empty where a library does not tell its tile: `kernel_rows` and
`library_rows` part the two. The index is the line in the file.
"""

import re

import pandas as pd

from perfmodel.gpu.kernels import KERNEL as KERNEL_COLUMNS
from perfmodel.measurements.columns import (
    AMOUNT,
    DTYPE,
    NAME,
    SIZE,
    TIME_US,
    checked_table,
    integer,
    refuse_duplicates,
    refuse_partly_empty,
    require_columns,
    word,
)
from perfmodel.measurements.csv_text import read_header, read_raw

#: Columns that together name a kernel.
KERNEL = list(KERNEL_COLUMNS)

_PROBLEM = ["m", "n", "k"]

_RESOURCES = {
    "registers_per_thread": SIZE,
    "register_spills": AMOUNT,
    "lds_bytes": AMOUNT,
    "workgroups_per_cu": AMOUNT,
}

_CODE = {
    "instructions_per_step": AMOUNT,
    "wgmma_per_step": AMOUNT,
    "mma_per_step": AMOUNT,
    "async_copies_per_step": AMOUNT,
    "matrix_waits_per_step": AMOUNT,
}

_MEASUREMENT = {
    "device": NAME,
    "library": NAME,
    "dtype": DTYPE,
    **dict.fromkeys(_PROBLEM, SIZE),
    **dict.fromkeys(KERNEL, SIZE),
    "concurrency_degree": SIZE,
    "rounds": SIZE,
    "time_us": TIME_US,
}

_MEASUREMENT_OPTIONAL = {
    "batch": SIZE,
    "trans_a": NAME,
    "trans_b": NAME,
    "cache": word("warm", "cold"),
    **_RESOURCES,
}

_WAITING = {
    "device": NAME,
    "dtype": DTYPE,
    **dict.fromkeys(_PROBLEM, SIZE),
    **dict.fromkeys(KERNEL, SIZE),
    "waiting": SIZE,
    "concurrency_degree": SIZE,
    "rounds": SIZE,
    "time_of_all_us": TIME_US,
}

_MEMBERS_OPTIONAL = {
    "library": NAME,
    "trans_b": NAME,
    "rounds": SIZE,
    "carveout_pct": integer(-1, 100),
    "concurrent_time_reversed_us": TIME_US,
}


def table_kind(path):
    """Kind of a measured table by its header.

    Parameters
    ----------
    path : str or Path
        CSV, gzipped if named .gz.

    Returns
    -------
    str
        ``measurement`` (equal GEMMs), ``members`` (different GEMMs, columns ``m_1`` and so on) or
        ``waiting`` (equal GEMMs waiting, run some at a time).

    Raises
    ------
    ValueError
        If it is none of them, or the file cannot be read.
    """
    header = read_header(path)
    for column, kind in (("m_1", "members"), ("waiting", "waiting"), ("m", "measurement")):
        if column in header:
            return kind
    raise ValueError(
        f"{path}: not a measured table: the header has none of the columns m, m_1, waiting"
    )


def read_measurements(path):
    """Times of equal GEMMs run together, one row a GEMM, kernel and concurrency degree.

    Parameters
    ----------
    path : str or Path
        CSV, gzipped if named .gz.

    Returns
    -------
    DataFrame
        ``batch`` and ``cache`` are added (1, warm) where the file has none.

    Raises
    ------
    ValueError
        If the file cannot be read, lacks columns, or a row breaks a rule or repeats another: one
        line with file, row, column, rule and value.
    """
    table, rules = _read(
        path, _MEASUREMENT, _MEASUREMENT_OPTIONAL, "a measurement table", {*KERNEL, *_RESOURCES}
    )
    refuse_partly_empty(path, table, KERNEL)
    refuse_duplicates(path, table, [c for c in rules if c not in {"time_us", *_RESOURCES}])
    added = {"batch": 1, "cache": "warm"}
    return table.assign(**{name: value for name, value in added.items() if name not in table})


def read_several_measurements(paths):
    """Measurement tables of several files as one, with a fresh index.

    Parameters
    ----------
    paths : sequence of path

    Returns
    -------
    DataFrame

    Raises
    ------
    ValueError
        As in `read_measurements`, or if a row of one file repeats one of another.
    """
    tables = [read_measurements(path) for path in paths]
    whole = pd.concat(tables, ignore_index=True)
    key = [c for c in (*_MEASUREMENT, "batch", "trans_a", "trans_b", "cache") if c in whole]
    repeated = whole.duplicated([c for c in key if c != "time_us"])
    if repeated.any():
        at = repeated.idxmax()
        sizes = "x".join(str(whole[name][at]) for name in _PROBLEM)
        raise ValueError(
            f"{', '.join(map(str, paths))}: {repeated.sum()} rows of one file repeat another's;"
            f" the first is of GEMM {sizes}")
    return whole


def kernel_rows(table):
    """Rows of a measurement table whose kernel is known, with int64 tile columns.

    Parameters
    ----------
    table : DataFrame
        From `read_measurements`.
    """
    rows = table[table["macro_tile_m"].notna()]
    return rows.astype(dict.fromkeys(KERNEL, "int64"))


def library_rows(table):
    """Rows of a measurement table whose kernel is not known, without tile columns.

    Parameters
    ----------
    table : DataFrame
        From `read_measurements`.
    """
    return table[table["macro_tile_m"].isna()].drop(columns=KERNEL)


def read_waiting(path):
    """Times of equal GEMMs waiting, all run, `concurrency_degree` at a time.

    Parameters
    ----------
    path : str or Path
        CSV, gzipped if named .gz.

    Returns
    -------
    DataFrame
        ``library`` and ``batch`` are added (triton, 1) where the file has none.

    Raises
    ------
    ValueError
        As in `read_measurements`.
    """
    optional = {"library": NAME, "batch": SIZE, "trans_a": NAME, "trans_b": NAME}
    table, rules = _read(path, _WAITING, optional, "a waiting table", {*KERNEL})
    refuse_partly_empty(path, table, KERNEL)
    refuse_duplicates(path, table, [c for c in rules if c != "time_of_all_us"])
    added = {"library": "triton", "batch": 1}
    return table.assign(**{name: value for name, value in added.items() if name not in table})


def read_gemms(path):
    """GEMMs of a CSV file with columns m, n, k and perhaps batch.

    Parameters
    ----------
    path : str or Path
        CSV, gzipped if named .gz.

    Returns
    -------
    list of tuple of int
        m, n, k, batch; each once.

    Raises
    ------
    ValueError
        As in `read_measurements`.
    """
    table, _ = _read(path, dict.fromkeys(_PROBLEM, SIZE), {"batch": SIZE}, "a table of GEMMs")
    table = table if "batch" in table else table.assign(batch=1)
    sizes = table[[*_PROBLEM, "batch"]].drop_duplicates()
    return [tuple(map(int, row)) for row in sizes.itertuples(index=False)]


def read_kernels(path):
    """Resources of kernels as a compiler and a driver report them, one row a kernel.

    Parameters
    ----------
    path : str or Path
        CSV, gzipped if named .gz. Only the tile columns are required. A ``dtype`` column says for
        which operands a kernel was compiled; without it a row holds for all.

    Returns
    -------
    DataFrame
        Resource columns are nullable Int64: a cell may be empty.

    Raises
    ------
    ValueError
        As in `read_measurements`.
    """
    resources = {**_RESOURCES, **_CODE}
    optional = {"dtype": DTYPE, **resources}
    table, _ = _read(path, dict.fromkeys(KERNEL, SIZE), optional, "a kernel table", resources)
    refuse_duplicates(path, table, [name for name in ("dtype", *KERNEL) if name in table])
    return table


def read_kernels_for(path, dtype):
    """The kernels of a table that hold for a dtype, all columns float64.

    Parameters
    ----------
    path : str or Path
    dtype : str

    Raises
    ------
    ValueError
        As in `read_kernels`, or if there is none.
    """
    table = read_kernels(path)
    if "dtype" in table:
        table = table[table.pop("dtype") == dtype]
        if table.empty:
            raise ValueError(f"{path}: no kernel for {dtype}")
    numbers = [name for name in (*KERNEL, *_RESOURCES, *_CODE) if name in table]
    return table[numbers].astype("float64")


def read_members(path):
    """Times of different GEMMs run together, one row a set of members.

    Parameters
    ----------
    path : str or Path
        CSV, gzipped if named .gz. Columns of member i end in ``_i``.

    Returns
    -------
    table : DataFrame
    members : int
        How many run together, at least 2.

    Raises
    ------
    ValueError
        As in `read_measurements`.
    """
    header = read_header(path)
    named = "|".join((*_PROBLEM, *KERNEL))
    members = max(
        2, *(int(i) for c in header for i in re.findall(rf"^(?:{named})_([0-9]{{1,2}})$", c)), 0)
    numbers = range(1, members + 1)
    required = {"device": NAME, "dtype": DTYPE}
    required |= {f"{column}_{i}": SIZE for i in numbers for column in (*_PROBLEM, *KERNEL)}
    required |= {"concurrent_time_us": TIME_US}
    optional = {f"isolated_time_{i}_us": TIME_US for i in numbers} | _MEMBERS_OPTIONAL
    table, rules = _read(path, required, optional, f"a table of {members} members")
    refuse_duplicates(path, table, [c for c in rules if rules[c] is not TIME_US])
    return table, members


def _read(path, required, optional, what, may_be_empty=()):
    table = read_raw(path)
    require_columns(path, tuple(table.columns), list(required), what)
    rules = required | {name: rule for name, rule in optional.items() if name in table}
    return checked_table(path, table, rules, may_be_empty), rules
