"""``perfmodel devices``: the chips, or one with every value, its unit and its source."""

from perfmodel.cli.options import add_json
from perfmodel.cli.text import say, say_json, table


def add_parser(commands):
    """Add the command."""
    parser = commands.add_parser(
        "devices", help="list the chips, or show all of one",
        description="List the chips, or show every value of one with its unit and source.",
        epilog="example: perfmodel devices h200")
    parser.add_argument("device", nargs="?", metavar="NAME", help="a name, or a TOML file's path")
    add_json(parser)
    parser.set_defaults(run=run)


def run(given):
    """Run the command."""
    from perfmodel.device_files import device_names, load_device

    if given.device is None:
        _list([load_device(name) for name in device_names()], given.json)
    else:
        _show(load_device(given.device), given.json)


def _list(devices, as_json):
    records = [
        {
            "name": device.name, "title": device.title, "architecture": device.architecture,
            "compute_units": device.compute_units,
            "dtypes": list(device.matrix_flop_per_clock_per_compute_unit),
            "calibrated": bool(device.fitted),
        }
        for device in devices
    ]
    if as_json:
        say_json({"devices": records})
        return
    say(table(
        ["name", "title", "architecture", "CUs", "calibrated", "matrix dtypes"],
        [[r["name"], r["title"], r["architecture"], str(r["compute_units"]),
          "yes" if r["calibrated"] else "no", " ".join(r["dtypes"]) or "not known"]
         for r in records]))


def _show(device, as_json):
    from perfmodel.devices import UNITS

    values = {
        name: {"value": source.value, "unit": UNITS[name], "kind": source.kind,
               "source": source.source, "checked": source.checked,
               **({} if source.spread_pct is None else {"spread_pct": source.spread_pct})}
        for name, source in device.sources.items()
    }
    fitted = {
        name: {"value": found.value, "standard_error": found.standard_error, "unit": found.unit}
        for name, found in device.fitted.items()
    }
    unknown = [name for name in UNITS if not device.has(name)]
    if as_json:
        say_json({
            "name": device.name, "title": device.title, "vendor": device.vendor,
            "architecture": device.architecture, "values": values, "fitted": fitted,
            "fit": _summary(device.fit), "unknown": unknown})
        return
    say(f"{device.name}: {device.title}, {device.vendor}, {device.architecture}\n")
    say(table(
        ["field", "value", "unit", "kind", "checked", "source"],
        [[name, f"{v['value']:.6g}" if isinstance(v["value"], float) else str(v["value"]),
          v["unit"], v["kind"], _checked(v), v["source"]] for name, v in values.items()]))
    if fitted:
        say("\n" + table(
            ["fitted parameter", "value", "standard error", "unit"],
            [[name, f"{f['value']:.5g}", f"{f['standard_error']:.2g}", f["unit"]]
             for name, f in fitted.items()]))
        say("\n" + "\n".join(f"{key}: {value}" for key, value in _summary(device.fit).items()))
    if unknown:
        say("\nnot known: " + ", ".join(unknown))


def _summary(fit):
    """The provenance without the long lists."""
    long = ("gemms", "folds", "ranges")
    return {key: value for key, value in fit.items()
            if key not in long and not key.endswith(("interval", "intervals"))}


def _checked(value):
    spread = f", spread {value['spread_pct']:g} %" if "spread_pct" in value else ""
    return value["checked"] + spread
