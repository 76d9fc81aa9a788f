"""``perfmodel calibrate``: fit the model's parameters to measurements, into a device file."""

import sys

from perfmodel.cli.options import add_json
from perfmodel.cli.text import say, say_json, table


def add_parser(commands):
    """Add the command."""
    parser = commands.add_parser(
        "calibrate", help="fit the parameters to measurements",
        description="Fit the physical parameters to measured times, cross-validated by GEMM, and"
                    " write them with their provenance into a device file.",
        epilog="example: perfmodel calibrate times.csv.gz --device h200 -o my-h200.toml")
    parser.add_argument("files", nargs="+", metavar="FILE", help="measurement table")
    parser.add_argument("--device", required=True, metavar="NAME", help="a name, or a TOML file")
    parser.add_argument("--kernels", action="append", metavar="FILE",
                        help="compiler-reported resources; may be repeated")
    parser.add_argument("-o", "--output", required=True, metavar="NEW.toml")
    add_json(parser)
    parser.set_defaults(run=run)


def run(given):
    """Run the command."""
    from perfmodel.device_files import load_device, write_device
    from perfmodel.files import refuse_unwritable
    from perfmodel.measurements.calibrate import calibrate

    device = load_device(given.device)
    if not given.output.endswith(".toml"):
        raise ValueError(f"-o {given.output}: a device file ends in .toml")
    refuse_unwritable(given.output)
    parts, skipped = _parts(given.files, device, given.kernels)
    fitted = calibrate(parts, device, given.files, progress=sys.stderr.isatty())
    write_device(given.output, fitted)
    report = {
        "output": given.output, "rows": fitted.fit["rows"], "skipped": dict(skipped),
        "unseen_mape_pct": fitted.fit["unseen_mape_pct"],
        "parameters": {
            name: {"value": f.value, "standard_error": f.standard_error, "unit": f.unit}
            for name, f in fitted.fitted.items()},
    }
    if given.json:
        say_json(report)
        return
    say(table(
        ["parameter", "value", "standard error", "unit"],
        [[name, f"{f['value']:.5g}", f"{f['standard_error']:.2g}", f["unit"]]
         for name, f in report["parameters"].items()]))
    say(f"\n{report['rows']} rows; mean absolute error of GEMMs left out of the fit:"
        f" {report['unseen_mape_pct']:.2f} %")
    kept = fitted.fit["not_determined"]
    if kept:
        say(f"not determined by these rows, left as they start: {', '.join(kept)}")
    for reason, count in skipped.items():
        say(f"skipped {count}: {reason}")
    say(f"written: {given.output}")


def _parts(files, device, kernel_files):
    """Rows of all files that the model can predict, and how many it cannot, by reason."""
    from collections import Counter

    from perfmodel.measurements.rows import (
        member_rows_of, members_selected, rows_of, selected, with_resources)
    from perfmodel.measurements.rows_waiting import waiting_rows_of, waiting_selected
    from perfmodel.measurements.table import (
        kernel_rows, read_members, read_several_measurements, read_waiting, table_kind)

    kinds = {path: table_kind(path) for path in files}
    parts, skipped = [], Counter()
    equal = [path for path, kind in kinds.items() if kind == "measurement"]
    if equal:
        table = kernel_rows(read_several_measurements(equal))
        rows, skipped = selected(with_resources(table, device, kernel_files), device)
        parts = [rows_of(group, device, dtype) for dtype, group in rows.groupby("dtype")]
    for path, kind in kinds.items():
        if kind == "members":
            table, members = read_members(path)
            rows, sides, left_out = members_selected(table, members, device, kernel_files)
            skipped += left_out
            parts += [
                member_rows_of(group, [side.loc[group.index] for side in sides], device, dtype)
                for dtype, group in rows.groupby("dtype")]
        elif kind == "waiting":
            rows, left_out = waiting_selected(read_waiting(path), device, kernel_files)
            skipped += left_out
            parts += [
                waiting_rows_of(group, device, dtype) for dtype, group in rows.groupby("dtype")]
    return parts, skipped
