"""``perfmodel validate``: predictions against measurements that no fit has seen."""

from perfmodel.cli.options import add_borrow, add_json, device_of
from perfmodel.cli.policies_text import policies_text
from perfmodel.cli.text import say, say_json, table


def add_parser(commands):
    """Add the command."""
    parser = commands.add_parser(
        "validate", help="error of the predictions against measurements",
        description="Error of the predictions. GEMMs that the shipped fit has seen are predicted"
                    " with the parameters of the fold that left them out.",
        epilog="example: perfmodel validate times.csv.gz --kernels kernels.csv")
    parser.add_argument("files", nargs="*", metavar="FILE",
                        help="measurement table (the shipped H200 times)")
    parser.add_argument("--kernels", action="append", metavar="FILE",
                        help="compiler-reported resources; may be repeated")
    parser.add_argument("--device", default="h200", metavar="NAME",
                        help="a name, or a TOML file's path (h200)")
    add_borrow(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(given):
    """Run the command."""
    from perfmodel.measurements.table import (
        read_members, read_several_measurements, read_waiting, table_kind)
    from perfmodel.measurements.validate import validate
    from perfmodel.measurements.policies import policies, summary
    from perfmodel.measurements.validate_members import merged, validate_members
    from perfmodel.measurements.validate_waiting import validate_waiting
    from perfmodel.resources import data_path

    device = device_of(given.device, given.parameters_from)
    files = given.files or [str(data_path("measurements", "h200", "gemm_concurrent.csv.gz"))]
    kinds = {path: table_kind(path) for path in files}
    reports = {}
    equal = [path for path, kind in kinds.items() if kind == "measurement"]
    if equal:
        table = read_several_measurements(equal)
        reports[", ".join(equal)] = validate(table, device, given.kernels)
    for path, kind in kinds.items():
        if kind == "members":
            reports[path] = validate_members(*read_members(path), device, given.kernels)
        elif kind == "waiting":
            waiting = read_waiting(path)
            reports[path] = validate_waiting(waiting, device, given.kernels)
            reports[path]["policies"] = summary(policies(waiting, device, given.kernels))
    if given.json:
        say_json(merged(list(reports.values())))
        return
    for path, report in reports.items():
        if len(reports) > 1:
            say(f"\n{path}")
        printer = (
            _say_members if "members" in report else
            _say_waiting if "by_protocol" in report else _say)
        printer(report, device.title)


def _say(report, title):
    say(f"{title}: {report['rows']} rows\n")
    if report["rows"]:
        lines = {"all": report} | report["by_degree"]
        say(table(
            ["degree", "rows", "MAPE %", "median %", "bias %", "p90 %", "Spearman", "regret",
             "regret of isolated best"],
            [_line(degree, errors, report) for degree, errors in lines.items()]))
        coverage = report["interval_coverage"]
        if coverage is not None:
            say(f"\nstated 90 % interval covers {coverage * 100:.1f} %")
        if report["estimated_resources"]:
            say(f"resources estimated from the tile: {report['estimated_resources']} rows")
    if "library_mape_pct" in report:
        say(f"best kernel of the space as an estimate of the library's time:"
            f" {report['library_mape_pct']:.1f} % ({report['library_rows']} rows)")
    for reason, count in report["skipped"].items():
        say(f"skipped {count}: {reason}")


def _line(degree, errors, report):
    figures = [errors[f"{name}_pct"] for name in ("mape", "median_ape", "bias", "p90_ape")]
    regrets = [report.get(name, {}).get(degree) for name in ("regret", "regret_isolated_best")]
    return [
        degree, str(errors["rows"]), *(f"{value:.2f}" for value in figures),
        f"{errors['spearman']:.4f}", *("" if r is None else f"{r:.3f}" for r in regrets)]


def _say_members(report, title):
    say(f"{title}: {report['rows']} sets of {report['members']} different GEMMs\n")
    lines = {"all": report} | report.get("by_carveout", {})
    say(table(
        ["carve-out", "rows", "MAPE %", "median %", "bias %", "p90 %", "Spearman"],
        [_line(_CARVEOUT.get(name, f"{name} %"), errors, report)[:7]
         for name, errors in lines.items()]))
    for reason, count in report["skipped"].items():
        say(f"skipped {count}: {reason}")


def _say_waiting(report, title):
    say(f"{title}: {report['rows']} rows of GEMMs that wait\n")
    say(table(
        ["waiting", "degree", "rounds", "rows", "MAPE %", "bias %"],
        [[*(str(errors.get(name, "all")) for name in ("waiting", "concurrency_degree", "rounds")),
          str(errors["rows"]), f"{errors['mape_pct']:.2f}", f"{errors['bias_pct']:.2f}"]
         for errors in (report, *report["by_protocol"])]))
    for policy in report["policies"]:
        say(policies_text(policy))
    for reason, count in report["skipped"].items():
        say(f"skipped {count}: {reason}")


_CARVEOUT = {"all": "all", "-1": "driver's"}
