"""Checks of what a user gives, each refusal one line: name, rule, value, where.

They belong to the user layer (files, command line, constructors of records). Equations are
unchecked: they take arrays and let NaN through.
"""

import math
import numbers
import re


def refusal(name, rule, value, where=""):
    """The `ValueError` for a value that breaks a rule; the caller raises it.

    Parameters
    ----------
    name : str
        What was given, for example ``"m"`` or ``"--degree"``.
    rule : str
        What it must be.
    value : object
        What it is instead; None for an empty cell.
    where : str, optional
        File and row, or the text it was part of.

    Examples
    --------
    >>> refusal("m", "an integer above 0", 0, "gemm.csv, row 3")
    ValueError('m must be an integer above 0, not 0 (gemm.csv, row 3)')
    """
    place = f" ({where})" if where else ""
    shown = "empty" if value is None else repr(value) if isinstance(value, str) else f"{value}"
    return ValueError(f"{name} must be {rule}, not {shown}{place}")


def positive_integer(name, value, maximum=None, where=""):
    """The value as an int of at least 1.

    Parameters
    ----------
    name, where : str
        For the message, as in `refusal`.
    value : int or str
        A number, or its decimal digits as on a command line. A float is refused, also a whole one.
    maximum : int, optional
        Largest value allowed.

    Raises
    ------
    ValueError
        If it is not an integer from 1 to `maximum`.

    Examples
    --------
    >>> positive_integer("--degree", "8", 64)
    8
    """
    rule = "an integer above 0" if maximum is None else f"an integer from 1 to {maximum}"
    number = _integer(value)
    if number is None or number < 1 or (maximum is not None and number > maximum):
        raise refusal(name, rule, value, where)
    return number


def positive_number(name, value, where=""):
    """The value as a finite float above 0.

    Parameters
    ----------
    name, where : str
        For the message, as in `refusal`.
    value : float or str

    Raises
    ------
    ValueError
        If it is not a number, NaN, infinite, zero or negative.

    Examples
    --------
    >>> positive_number("--clock-ghz", "1.98")
    1.98
    """
    number = _number(value)
    if number is None or not math.isfinite(number) or number <= 0:
        raise refusal(name, "a finite number above 0", value, where)
    return number


def one_of(name, value, valid, where=""):
    """The value, if it is one of the valid ones.

    Parameters
    ----------
    name, where : str
        For the message, as in `refusal`.
    value : str
    valid : sequence of str
        Listed in the message in this order.

    Raises
    ------
    ValueError
        If it is none of them.

    Examples
    --------
    >>> one_of("--dtype", "fp16", ("fp32", "fp16"))
    'fp16'
    """
    if value not in valid:
        raise refusal(name, "one of " + ", ".join(valid), value, where)
    return value


def _integer(value):
    if isinstance(value, str):
        # At most 18 digits: int() of thousands raises an error of its own.
        return int(value) if re.fullmatch(r"[+-]?[0-9]{1,18}", value.strip()) else None
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        return None
    return int(value)


def _number(value):
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
