"""Rules for the columns of measured tables, and the check of a whole table against them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfmodel.checks import refusal
from perfmodel.problems import DTYPES, SIZE_LIMIT

_WORDS_SHOWN = 40


@dataclass(frozen=True)
class Rule:
    """What every cell of a column must be.

    Attributes
    ----------
    text : str
        The rule in words, for messages.
    kind : str
        ``integer``, ``number`` or ``word``.
    minimum, maximum : float
        Bounds of an integer, included; a number lies above `minimum`, excluded, and is finite.
    words : tuple of str
        The valid words; empty if any is valid.
    """

    text: str
    kind: str
    minimum: float = 0
    maximum: float = np.inf
    words: tuple = ()


def integer(minimum, maximum):
    """Rule of a column of integers, bounds included."""
    return Rule(f"an integer from {minimum} to {maximum}", "integer", minimum, maximum)


def word(*words):
    """Rule of a column of text: one of the words, or if none are given any that is not empty."""
    text = "one of " + ", ".join(words) if words else "text that is not empty"
    return Rule(text, "word", words=words)


SIZE = integer(1, SIZE_LIMIT)
AMOUNT = integer(0, 2**31 - 1)
TIME_US = Rule("a finite number above 0 [us]", "number")
NAME = word()
DTYPE = word(*DTYPES)


def checked_table(path, table, rules, may_be_empty=()):
    """The table with each ruled column checked and of one type.

    Integers become int64, numbers float64, words str; integer columns that may have empty cells
    become pandas' nullable Int64. Columns without a rule are left as they are.

    Parameters
    ----------
    path : str or Path
        For messages.
    table : DataFrame
        As `read_raw` gives it: the index is the line in the file.
    rules : mapping of column name to Rule
        Of columns the table has.
    may_be_empty : collection of str
        Columns whose cells may be empty.

    Returns
    -------
    DataFrame
        With the same index.

    Raises
    ------
    ValueError
        Naming file, row, column, rule and value of the first bad cell, and how many more are bad.
    """
    checked, bad = {}, {}
    for name, rule in rules.items():
        values, fault = _converted(table[name], rule)
        empty = table[name].isna()
        if name in may_be_empty:
            fault = fault & ~empty
        bad[name] = fault.to_numpy()
        checked[name] = (values, rule.kind, name in may_be_empty)
    _refuse_cells(path, table, rules, pd.DataFrame(bad, index=table.index))
    typed = {name: _typed(*value) for name, value in checked.items()}
    return table.assign(**typed)


def require_columns(path, header, required, what):
    """Refuse a header that lacks columns, naming all that are missing.

    Parameters
    ----------
    path : str or Path
    header : sequence of str
    required : sequence of str
    what : str
        Kind of the table, for the message.

    Raises
    ------
    ValueError
    """
    missing = [name for name in required if name not in header]
    if missing:
        raise ValueError(f"{path}: {what} lacks the columns {', '.join(missing)}")


def refuse_duplicates(path, table, key):
    """Refuse a table in which two rows have the same key.

    Parameters
    ----------
    path : str or Path
    table : DataFrame
        Its index is the line in the file.
    key : list of str
        Columns that together name a measurement.

    Raises
    ------
    ValueError
        Naming the first row that repeats one, the row repeated, and how many more there are.
    """
    repeats = table.duplicated(key)
    if not repeats.any():
        return
    row = repeats.idxmax()
    same = table[key].apply(lambda column: _same(column, column[row])).all(axis=1)
    raise ValueError(
        f"{path}, row {row}: repeats row {same.idxmax()} (same {', '.join(key)}"
        f"{_others(repeats.sum())})"
    )


def refuse_partly_empty(path, table, columns):
    """Refuse rows in which some of the columns are empty and others are not.

    Parameters
    ----------
    path : str or Path
    table : DataFrame
        Its index is the line in the file.
    columns : list of str

    Raises
    ------
    ValueError
        Naming row and column of the first, and how many more rows there are.
    """
    empty = table[columns].isna()
    partly = empty.any(axis=1) & ~empty.all(axis=1)
    if partly.any():
        row = partly.idxmax()
        where = f"{path}, row {row}{_others(partly.sum())}"
        rule = f"given, or all of {', '.join(columns)} empty"
        raise refusal(empty.loc[row].idxmax(), rule, None, where)


def _converted(column, rule):
    if rule.kind == "word":
        words = column.astype("str")
        if rule.words:
            return words, ~words.isin(rule.words)
        return words, column.isna() | (words.str.strip() == "")
    if column.dtype.kind == "b":
        return column, pd.Series(True, index=column.index)
    numbers = pd.to_numeric(column, errors="coerce")
    if rule.kind == "number":
        return numbers, ~(np.isfinite(numbers) & (numbers > rule.minimum))
    inside = (numbers >= rule.minimum) & (numbers <= rule.maximum)
    return numbers, ~(inside & (numbers % 1 == 0))


def _typed(values, kind, may_be_empty):
    if kind == "word":
        return values
    if kind == "number":
        return values.astype("float64")
    return values.astype("Int64" if may_be_empty else "int64")


def _refuse_cells(path, table, rules, bad):
    rows = bad.any(axis=1)
    if not rows.any():
        return
    row = rows.idxmax()
    name = bad.loc[row].idxmax()
    where = f"{path}, row {row}{_others(bad.to_numpy().sum())}"
    raise refusal(name, rules[name].text, _shown(table.at[row, name]), where)


def _others(count):
    return f"; {count - 1} more" if count > 1 else ""


def _shown(cell):
    if isinstance(cell, str):
        return cell if len(cell) <= _WORDS_SHOWN else cell[:_WORDS_SHOWN] + "…"
    if pd.isna(cell):
        return None
    number = float(cell)
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _same(column, value):
    return column.isna() if pd.isna(value) else column.eq(value).fillna(False)
