"""TOML text of nested dictionaries: the standard library reads TOML but does not write it."""

import json
import math
import numbers
import re
from decimal import Decimal


def toml_value(value):
    """TOML text of one value: str, bool, int, float (NumPy's too), list, or dict (inline table).

    Parameters
    ----------
    value : object

    Raises
    ------
    ValueError
        If the value is of another type, or not finite.

    Examples
    --------
    >>> toml_value({"value": 1.98e9, "source": "datasheet"})
    '{ value = 1.98e+9, source = "datasheet" }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, save that TOML also wants DEL escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return _float(float(value))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, dict):
        pairs = (f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items())
        return "{ " + ", ".join(pairs) + " }"
    raise ValueError(f"TOML cannot hold {value!r}: only text, truth, finite numbers, lists, tables")


def toml_key(key):
    """TOML text of a key: bare where allowed, else quoted.

    Examples
    --------
    >>> toml_key("hbm_bytes"), toml_key("fold 1")
    ('hbm_bytes', '"fold 1"')
    """
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def toml_table(name, table):
    """TOML text of a table, its values first, then its sub-tables under headings of their own.

    Parameters
    ----------
    name : str
        Heading, already in TOML's form.
    table : dict

    Examples
    --------
    >>> toml_table("fit", {"rows": 3, "fold": {"gap_s": 1e-6}})
    '[fit]\\nrows = 3\\n\\n[fit.fold]\\ngap_s = 1e-06\\n'
    """
    values = {key: value for key, value in table.items() if not isinstance(value, dict)}
    nested = {key: value for key, value in table.items() if isinstance(value, dict)}
    lines = [f"{toml_key(key)} = {toml_value(item)}" for key, item in values.items()]
    texts = ["\n".join([f"[{name}]", *lines]) + "\n"]
    texts += [toml_table(f"{name}.{toml_key(key)}", item) for key, item in nested.items()]
    return "\n".join(texts)


def _float(value):
    if abs(value) < 1e6:
        return repr(value)
    # repr() spells 4.22e12 out: the same number with an exponent is easier on the reader.
    return f"{Decimal(repr(value)).normalize():e}"
