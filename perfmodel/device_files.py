"""Device files: TOML texts of devices, data/devices/ or the user's own."""

import math
import tomllib
from pathlib import Path

from perfmodel.checks import one_of, refusal
from perfmodel.devices import KINDS, TEXTS, VENDORS, Fitted, Source
from perfmodel.devices import checked_value, gpu_from, history_of
from perfmodel.files import write_text_atomic
from perfmodel.resources import data_path
from perfmodel.toml_text import toml_key, toml_table, toml_value


#: Keys of the entry of a value.
_SOURCE = ("value", "source", "checked", "spread_pct")


def device_names():
    """Names of the shipped devices, sorted, tuple of str.

    Examples
    --------
    >>> "h200" in device_names()
    True
    """
    return tuple(sorted(path.stem for path in data_path("devices").glob("*.toml")))


def load_device(name_or_path):
    """Device by its name, or from a TOML file of the user's own.

    Parameters
    ----------
    name_or_path : str or Path
        One of `device_names`, in either case of letters; or a path (has a folder or ends in
        .toml).

    Returns
    -------
    Gpu

    Raises
    ------
    ValueError
        If the name is unknown (lists the valid ones), the file is missing or is not TOML, or a
        key or value in it is wrong: one line with file, key, rule and value.

    Examples
    --------
    >>> load_device("h200").compute_units
    132
    """
    text = str(name_or_path)
    if not text.endswith(".toml") and Path(text).name == text:
        one_of("device", text.lower(), device_names(), "or the path of a .toml file")
        return load_device(data_path("devices", f"{text.lower()}.toml"))
    try:
        content = Path(name_or_path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{text}: not a text file in UTF-8") from None
    except OSError as error:
        raise ValueError(f"{text}: cannot be read: {error.strerror or error}") from None
    return parse_device(content, text)


def parse_device(text, where="device"):
    """Device from the text of a device file.

    Parameters
    ----------
    text : str
        TOML: name, title, vendor, architecture; tables ``[datasheet]``, ``[measured]`` and
        ``[assumed]`` of ``field = { value, source, checked }``; and as `calibrate` writes them
        ``[fitted]`` of ``parameter = { value, standard_error, unit }`` and ``[fit]``.
    where : str
        Name of the file, for messages.

    Raises
    ------
    ValueError
        As in `load_device`.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where}: not TOML: {error}") from None
    except RecursionError:
        raise ValueError(f"{where}: lists or tables are nested too deep") from None
    try:
        return _device(content, where)
    except OverflowError:
        raise ValueError(f"{where}: a number in it is too large") from None


def _device(content, where):
    valid = (*TEXTS, *KINDS, "fitted", "fit")
    for key in content:
        one_of("key", key, valid, where)
    texts = {key: _text(key, content.get(key), where) for key in TEXTS}
    one_of("vendor", texts["vendor"], VENDORS, where)
    given = {kind: _table(kind, content, where) for kind in KINDS}
    history = {}
    for kind, table in given.items():
        for key, entry in table.items():
            history.setdefault(key, []).append(_source(kind, key, entry, where))
    fitted = _table("fitted", content, where)
    return gpu_from(
        texts,
        history,
        {key: _fitted(key, entry, where) for key, entry in fitted.items()},
        _fit(_table("fit", content, where), where),
    )


def dump_device(device):
    """Text of a device file that reads back as the same device.

    Parameters
    ----------
    device : Gpu

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If `fit` holds what TOML cannot.
    """
    texts = [f"{key} = {toml_value(getattr(device, key))}" for key in TEXTS]
    blocks = ["\n".join(texts) + "\n"]
    history = history_of(device)
    for kind in KINDS:
        entries = {key: s for key, row in history.items() for s in row if s.kind == kind}
        blocks += [_entries(kind, entries, _SOURCE)] if entries else []
    if device.fitted:
        blocks += [_entries("fitted", device.fitted, ("value", "standard_error", "unit"))]
    if device.fit:
        blocks += [toml_table("fit", device.fit)]
    return "\n".join(blocks)


def write_device(path, device):
    """Write a device file whole or not at all, after checking that it reads back the same.

    Parameters
    ----------
    path : str or Path
    device : Gpu

    Raises
    ------
    ValueError
        If a value could not be read back, for example a fitted one that is not finite.
    OSError
        With one line naming `path`, if it cannot be written.
    """
    text = dump_device(device)
    parse_device(text, str(path))
    write_text_atomic(path, text)


def _entries(name, records, attributes):
    known = {
        key: {a: getattr(record, a) for a in attributes if getattr(record, a) is not None}
        for key, record in records.items()}
    lines = (f"{toml_key(key)} = {toml_value(values)}" for key, values in known.items())
    return "\n".join([f"[{name}]", *lines]) + "\n"


def _source(kind, key, entry, where):
    place = f"{where}, [{kind}]"
    _keys(key, entry, _SOURCE, ("value", "source"), place)
    spread = entry.get("spread_pct")
    if spread is not None and not (_is_number(spread) and spread >= 0):
        raise refusal(f"{key}.spread_pct", "a finite number of at least 0", spread, place)
    return Source(
        checked_value(key, entry["value"], place),
        kind,
        _text(f"{key}.source", entry["source"], place),
        _text(f"{key}.checked", entry.get("checked", "not stated"), place),
        None if spread is None else float(spread),
    )


def _fitted(key, entry, where):
    place = f"{where}, [fitted]"
    names = ("value", "standard_error", "unit")
    _keys(key, entry, names, names, place)
    value, error = entry["value"], entry["standard_error"]
    for name, number in (("value", value), ("standard_error", error)):
        if not _is_number(number):
            raise refusal(f"{key}.{name}", "a finite number", number, place)
    if error < 0:
        raise refusal(f"{key}.standard_error", "0 or more", error, place)
    return Fitted(float(value), float(error), _text(f"{key}.unit", entry["unit"], place))


def _is_number(value):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def _keys(name, entry, valid, required, where):
    if not isinstance(entry, dict):
        rule = "a table { " + ", ".join(f"{key} = …" for key in valid) + " }"
        raise refusal(name, rule, entry, where)
    for key in entry:
        one_of(f"key of {name}", key, valid, where)
    for key in required:
        if key not in entry:
            raise ValueError(f"{name} has no {key} ({where})")


def _table(name, content, where):
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise refusal(name, "a table", table, where)
    return table


def _fit(fit, where):
    """The provenance of a fit, if what the model reads of it has the shape it needs."""
    place = f"{where}, [fit]"
    for name in ("dtypes", "gemms"):
        if not _list_of(str, fit.get(name, [])):
            raise refusal(name, "a list of text", fit[name], place)
    by_fold = ("fold_intervals", "cold_fold_intervals")
    for name in ("ranges", "interval", "cold_interval", "folds", *by_fold):
        _table(name, fit, place)
    for axis, ends in fit.get("ranges", {}).items():
        if not _list_of((int, float), ends) or len(ends) != 2:
            raise refusal(f"ranges.{axis}", "two numbers, least and greatest", ends, place)
    for fold, values in fit.get("folds", {}).items():
        if not isinstance(values, dict) or not _list_of((int, float), [*values.values()]):
            raise refusal(f"folds.{fold}", "a table of numbers", values, place)
    intervals = {f"{name}.{key}": interval
                 for name in by_fold for key, interval in fit.get(name, {}).items()}
    intervals |= {name: fit.get(name) for name in ("interval", "cold_interval")}
    for name, interval in intervals.items():
        if interval is not None and not _is_interval(interval):
            raise refusal(
                name, "degrees (rising), low and high: equal lists of numbers above 0", interval,
                place)
    return fit


def _is_interval(interval):
    columns = [interval.get(key) for key in ("degrees", "low", "high")] if (
        isinstance(interval, dict)) else [None]
    if not all(_list_of((int, float), column) and column for column in columns):
        return False
    degrees, low, high = columns
    positive = all(math.isfinite(x) and x > 0 for column in columns for x in column)
    rising = all(first < second for first, second in zip(degrees, degrees[1:]))
    equal = len(degrees) == len(low) == len(high)
    return positive and rising and equal and all(x <= y for x, y in zip(low, high))


def _list_of(kinds, value):
    return isinstance(value, list) and all(isinstance(item, kinds) for item in value)


def _text(name, value, where):
    if value is None:
        raise ValueError(f"{name} is missing ({where})")
    if not isinstance(value, str) or not value:
        raise refusal(name, "text that is not empty", value, where)
    return value
