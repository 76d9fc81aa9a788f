"""``perfmodel measure``: time GEMMs on this machine's GPU, alone and together, into tables."""

import sys

from perfmodel.checks import positive_number
from perfmodel.cli.measure_options import (
    DRAWN, ROWS, draws_afresh, refuse_meaningless, setting_of, work_of)
from perfmodel.cli.options import add_json
from perfmodel.cli.policies_text import policies_text
from perfmodel.cli.text import say, say_json, table


def add_parser(commands):
    """Add the command."""
    parser = commands.add_parser(
        "measure", help="time GEMMs on this machine's GPU",
        description="Time GEMMs on this machine's GPU, alone and together, into a measurement"
                    " table. Needs the extra 'measure' (torch and triton). What the table has"
                    " already is not measured again: an interrupted run goes on where it stopped.",
        epilog="example: perfmodel measure --device h200 --draw 20 --minutes 8 -o times.csv.gz")
    parser.add_argument("--device", metavar="NAME",
                        help="a name, or the TOML file that --probe wrote")
    parser.add_argument("-o", "--output", required=True, metavar="FILE",
                        help="table to write, .csv or .csv.gz")
    parser.add_argument("--probe", action="store_true", help="measure the chip itself and write a"
                        " device file (-o NEW.toml) instead")
    parser.add_argument("--verify", action="store_true", help="run the model's picks, and all that"
                        " they are chosen from, on GEMMs that its fit has not seen")
    parser.add_argument("--repeat", metavar="FILE", help="measure rows of this table again and tell"
                        " by how much they moved")
    parser.add_argument("--rows", metavar="N", help="so many, at random"
                        f" (default {ROWS})")
    what = parser.add_argument_group("which GEMMs and kernels")
    what.add_argument("--gemm", action="append", metavar="MxNxK[xBATCH]", help="may be repeated")
    what.add_argument("--gemms", metavar="FILE", help="CSV with columns m, n, k and perhaps batch")
    what.add_argument("--draw", metavar="N", help=f"draw N GEMMs at random (default {DRAWN})")
    what.add_argument("--seed", metavar="S", help="of the draw; a fresh one if left out")
    what.add_argument("--kernels", metavar="FILE", help="CSV with tile columns (default: the 58"
                      " kernels of the shipped tables)")
    what.add_argument("--no-library", action="store_true", help="leave out cuBLAS or hipBLASLt")
    how = parser.add_argument_group("how")
    how.add_argument("--dtype", help="fp16 (default), bf16, tf32, fp8 or int8")
    how.add_argument("--trans-b", choices=("N", "T"), help="T: B is stored as [n, k] (default for"
                     " tf32, fp8 and int8)")
    how.add_argument("--degree", metavar="LIST", help="concurrency degrees"
                     " (default 1,2,4,8,16)")
    how.add_argument("--rounds", metavar="LIST", help="launches back to back on each branch"
                     " (default 3; 1 with --cache cold; 1,3 with --waiting)")
    how.add_argument("--cache", choices=("warm", "cold"), help="L2 at the start (default warm)")
    how.add_argument("--waiting", metavar="LIST", help="so many GEMMs wait, each with its own"
                     " operands, and are run 1, 2, 4 … at a time: a waiting table")
    how.add_argument("--mixed", metavar="SETS", help="different GEMMs together: so many random"
                     " sets, a table of members")
    how.add_argument("--members", metavar="N", help="of each set (default 2)")
    how.add_argument("--carveout", metavar="LIST", help="shared-memory carve-outs"
                     " of mixed sets in per cent, -1: left to the driver (default -1,100)")
    how.add_argument("--streams", action="store_true", help="launch on plain streams, do not"
                     " capture graphs")
    how.add_argument("--minutes", metavar="M", help="stop when they are over")
    add_json(parser)
    parser.set_defaults(run=run)


def run(given):
    """Run the command."""
    refuse_meaningless(given)
    if given.probe:
        return _probe(given)
    return _measure(given)


def _measure(given):
    from pathlib import Path

    from perfmodel.device_files import load_device
    from perfmodel.files import refuse_unwritable
    from perfmodel.gpu.kernels import KERNEL, kernel_label
    from perfmodel.gpu.machine import machine_of
    from perfmodel.live.campaign import measure, refuse_other_gpu
    from perfmodel.live.open_gpu import open_gpu
    from perfmodel.live.plans import LIBRARIES
    from perfmodel.live.resources_table import occupancy_differs
    from perfmodel.problems import parse_gemm

    if given.device is None:
        raise ValueError("--device is needed: a name, or a file that measure --probe wrote")
    device = load_device(given.device)
    setting = setting_of(given)
    if given.verify:
        machine_of(device, setting.dtype)  # refuses one that nobody has fitted, or without dtype
    if not given.output.endswith((".csv", ".csv.gz")):
        raise ValueError(f"-o {given.output}: a table ends in .csv or .csv.gz")
    stem = given.output.removesuffix(".gz").removesuffix(".csv")
    resources_file = f"{stem}.kernels.csv"
    for path in (given.output, resources_file, *([f"{stem}.png"] if given.verify else ())):
        refuse_unwritable(path)
    if given.repeat is not None and Path(given.repeat).resolve() == Path(given.output).resolve():
        raise ValueError(f"-o {given.output}: the table that is repeated; give a new name")
    minutes = None if given.minutes is None else positive_number("--minutes", given.minutes)
    seen = [parse_gemm(text) for text in device.fit.get("gemms", ())]
    seed, gemms, kernels, make_jobs = work_of(given, device, setting, seen)

    progress = sys.stderr.isatty()
    runner = open_gpu(seed, captured=not given.streams)
    refuse_other_gpu(runner, given.output)  # before the kernels beside it are overwritten
    resources, failed = _prepared(runner, kernels, gemms, setting, resources_file, progress)
    kernels = [tuple(row[name] for name in KERNEL) for row in resources]
    library = None if given.no_library else LIBRARIES[runner.backend]
    if draws_afresh(given):
        sys.stderr.write(f"go on with this, should it be interrupted, by --seed {seed}\n")
    count = measure(runner, make_jobs(kernels, library), given.output, minutes, progress)
    if not Path(given.output).exists():
        raise OSError("no row was measured: "
                      + "; ".join(f"{rows} rows {what}" for what, rows in count.items()))
    report = {
        "output": given.output, "resources": resources_file if resources else None,
        "seed": seed, **runner.gpu(),
        "rows": dict(count),
        "kernels_failed": {kernel_label(kernel): reason for kernel, reason in failed.items()},
        "occupancy_differs": occupancy_differs(device, resources),
    }
    if given.repeat:
        report["repeated"] = _repeated(given)
    if given.verify:
        report |= {"figure": f"{stem}.png", "verified": _verified(
            given.output, device, [resources_file], stem)}
    if given.json:
        say_json(report)
        return
    say(f"{report['gpu']}, driver {report['driver']}, torch {report['torch']},"
        f" triton {report['triton']}; seed {seed}")
    for kernel, reason in report["kernels_failed"].items():
        say(f"kernel {kernel} left out: {reason}")
    for kernel, both in report["occupancy_differs"].items():
        say(f"kernel {kernel}: workgroups on a compute unit {both}")
    for what, rows in count.items():
        say(f"{rows} rows {what}")
    if given.repeat:
        say("\n" + table(
            ["degree", "rows", "mean |change| %", "median %", "p95 %"],
            [[degree, f"{r['rows']:.0f}", *(f"{r[name]:.2f}" for name in list(r)[1:])]
             for degree, r in report["repeated"].items()]) + "\n")
    for verified in report.get("verified", ()):
        say(policies_text(verified))
    written = [report[name] for name in ("output", "resources", "figure") if report.get(name)]
    say(f"written: {', '.join(written)}")


def _probe(given):
    import re
    from datetime import date
    from pathlib import Path

    from tqdm import tqdm

    from perfmodel.device_files import write_device
    from perfmodel.files import refuse_unwritable
    from perfmodel.live.one_line import failing_in_one_line
    from perfmodel.live.open_gpu import open_gpu
    from perfmodel.live.readings import device_from

    if not given.output.endswith(".toml"):
        raise ValueError(f"-o {given.output}: a device file ends in .toml")
    refuse_unwritable(given.output)
    runner = open_gpu()
    with (failing_in_one_line("probing failed"),
          tqdm(desc="probe", unit="measurement", disable=not sys.stderr.isatty()) as bar):
        readings = runner.readings(lambda name: bar.update())
    name = re.sub(r"[^a-z0-9]+", "-", Path(given.output).stem.lower()).strip("-") or "my-gpu"
    device = device_from(readings, runner.gpu(), name, date.today().isoformat())
    write_device(given.output, device)
    report = {"output": given.output, "name": name, **runner.gpu(), "readings": {
        field: {"value": reading.value, "spread_pct": reading.spread_pct, "source": reading.source}
        for field, reading in readings.items()}}
    if given.json:
        say_json(report)
        return
    say(f"{report['gpu']}, driver {report['driver']}\n")
    say(table(
        ["field", "value", "spread %", "how"],
        [[field, f"{r.value:.6g}", "" if r.spread_pct is None else f"{r.spread_pct:.1f}", r.source]
         for field, r in readings.items()]))
    say(f"\nwritten: {given.output}")


def _repeated(given):
    """By how much the rows of a table moved, dict of degree to figures."""
    from perfmodel.measurements.repeats import repeat_errors, repeats
    from perfmodel.measurements.table import read_measurements

    both = repeats(read_measurements(given.repeat), read_measurements(given.output))
    return repeat_errors(both).to_dict("index")


def _verified(path, device, kernel_files, stem):
    """Summaries of what the model's picks are worth in a waiting table; draws the figure."""
    from perfmodel.figures import load
    from perfmodel.measurements.policies import policies, summary
    from perfmodel.measurements.table import read_waiting
    from perfmodel.plotting import save

    found = policies(read_waiting(path), device, kernel_files)
    if found.empty:
        raise OSError(f"{path}: no GEMM was measured at all degrees; run again to go on")
    save(load("verification").draw(found), stem)
    return summary(found)


def _prepared(runner, kernels, gemms, setting, path, progress):
    """Resources of the kernels that can run, which are written, and why others cannot."""
    from tqdm import tqdm

    from perfmodel.files import write_table_atomic
    from perfmodel.live.one_line import failing_in_one_line
    from perfmodel.live.resources_table import joined_resources

    if not kernels:  # rows of the library are repeated
        return [], {}
    with (failing_in_one_line("compiling failed"),
          tqdm(desc="compile", unit="kernel", disable=not progress) as bar):
        resources, failed = runner.prepare(kernels, gemms, setting, bar.update)
    if not resources:
        raise OSError(f"no kernel compiles for this GPU; the first: {next(iter(failed.values()))}")
    write_table_atomic(path, joined_resources(path, resources))
    return resources, failed
