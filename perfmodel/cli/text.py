"""Text for people and JSON for machines, on standard output."""

import json
import math
import sys


def say(text):
    """Write a text and a line end."""
    sys.stdout.write(text + "\n")


def say_json(value):
    """Write one JSON object; NaN becomes null, since JSON has none."""
    say(json.dumps(_plain(value), indent=2, allow_nan=False))


def table(header, rows):
    """A table with aligned columns: text to the left, numbers to the right.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of sequence of str

    Returns
    -------
    str

    Examples
    --------
    >>> table(["name", "us"], [["a", "1.0"], ["bc", "10.0"]]).splitlines()
    ['name    us', 'a      1.0', 'bc    10.0']
    """
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    right = [all(_numeric(line[i]) for line in lines[1:]) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, right)).rstrip()
        for line in lines
    )


def _numeric(cell):
    return bool(cell) and (cell[0].isdigit() or cell[0] in "-+.") and " " not in cell


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
