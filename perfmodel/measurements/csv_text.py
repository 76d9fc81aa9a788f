"""CSV files, gzipped or not, as bytes, header and table of raw values."""

import csv
import gzip
import io
import warnings
import zlib
from pathlib import Path

import pandas as pd

_GZIP_MAGIC = b"\x1f\x8b"


def read_csv_bytes(path):
    """Content of a CSV file, decompressed if its name ends in .gz.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If the file cannot be read, is empty, is named .gz and is not gzip (or the reverse), or
        breaks off.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from None
    named, zipped = Path(path).suffix == ".gz", content.startswith(_GZIP_MAGIC)
    if content and named != zipped:
        fault = "named .gz but is not gzip" if named else "gzip but is not named .gz"
        raise ValueError(f"{path}: the file is {fault}")
    try:
        content = gzip.decompress(content) if zipped else content
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: damaged gzip file: {error}") from None
    if not content.strip():
        raise ValueError(f"{path}: the file is empty")
    return content


def read_header(path):
    """Column names of a CSV file, tuple of str.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    ValueError
        As in `read_csv_bytes`, or if the file is not UTF-8 or names a column twice.
    """
    return _header(path, read_csv_bytes(path))


def read_raw(path):
    """Table of a CSV file before any check of its columns.

    Empty cells are NaN; other text (``nan`` too) stays text if its column is not all numbers.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DataFrame
        Its index is the line of the file, the header being line 1.

    Raises
    ------
    ValueError
        As in `read_header`, or if rows and header differ in length, or there are no rows.
    """
    content = read_csv_bytes(path)
    _header(path, content)
    try:
        with warnings.catch_warnings():
            # pandas only warns when it drops the cells of overlong rows.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(
                io.BytesIO(content),
                encoding="utf-8-sig",
                keep_default_na=False,
                na_values=[""],
                index_col=False,
                skip_blank_lines=False,
                low_memory=False,
            )
    except pd.errors.ParserWarning:
        raise ValueError(f"{path}, row 2: more cells than the header has columns") from None
    except ValueError as error:
        raise ValueError(f"{path}: not CSV: {' '.join(str(error).split())}") from None
    _refuse_short_rows(path, content, len(table.columns))
    table.index += 2
    table = table.dropna(how="all")
    if table.empty:
        raise ValueError(f"{path}: no rows below the header")
    return table


def _refuse_short_rows(path, content, columns):
    """A row cut off is refused, not filled up: its last cell may have lost digits."""
    for line, cells in enumerate(csv.reader(io.StringIO(content.decode("utf-8-sig"))), 1):
        if cells and len(cells) < columns:
            raise ValueError(
                f"{path}, row {line}: {len(cells)} cells; the header has {columns} columns")


def _header(path, content):
    first = content.split(b"\n", 1)[0]
    try:
        names = next(csv.reader([first.decode("utf-8-sig").strip("\r")]))
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file in UTF-8") from None
    except csv.Error as error:
        raise ValueError(f"{path}: not CSV: {error}") from None
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path}: the header names {', '.join(twice)} twice")
    return tuple(names)
