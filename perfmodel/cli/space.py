"""``perfmodel space``: the whole kernel space of a device, on GEMMs, to a table."""

from perfmodel.cli.options import add_borrow, add_json, degree_of, device_of
from perfmodel.cli.text import say, say_json


def add_parser(commands):
    """Add the command."""
    parser = commands.add_parser(
        "space", help="time of every kernel on GEMMs, to a table",
        description="Time of every candidate kernel, on each GEMM at each degree, as CSV. Kernels"
                    " that cannot run have no time and a reason.",
        epilog="example: perfmodel space h200 --gemm 512x1024x2048 --degree 1,8 -o space.csv")
    parser.add_argument("device", metavar="DEVICE", help="a name, or a TOML file's path")
    parser.add_argument(
        "--gemm", required=True, action="append", metavar="MxNxK[xBATCH]", help="may be repeated")
    parser.add_argument("--dtype", default="fp16", help="type of the operands (fp16)")
    parser.add_argument("--degree", default="1", metavar="N[,N]", help="GEMMs running together (1)")
    parser.add_argument(
        "--kernels", metavar="FILE", help="candidates of a CSV file instead of the rules'")
    parser.add_argument("-o", "--output", metavar="FILE", help="CSV to write; else it is printed")
    add_borrow(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(given):
    """Run the command."""
    import io

    from perfmodel.checks import one_of
    from perfmodel.files import write_table_atomic
    from perfmodel.problems import DTYPES

    one_of("--dtype", given.dtype, DTYPES)
    degrees = sorted({degree_of(text) for text in given.degree.split(",")})
    device = device_of(given.device, given.parameters_from)
    table = _table(given, device, degrees)
    if given.output is not None:
        write_table_atomic(given.output, table)
    feasible = int((table["reason"] == "").sum())
    if given.json:
        rows = None if given.output else table.to_dict("records")
        say_json({"rows": len(table), "feasible": feasible, "output": given.output, "table": rows})
    elif given.output:
        say(f"{given.output}: {len(table)} rows, {feasible} of kernels that can run")
    else:
        text = io.StringIO()
        table.to_csv(text, index=False)
        say(text.getvalue().rstrip("\n"))


def _table(given, device, degrees):
    import numpy as np
    import pandas as pd

    from perfmodel.equations.occupancy import LIMITS
    from perfmodel.gpu.kernels import KERNEL, infeasible, kernels_from, occupancy_of, rule_kernels
    from perfmodel.gpu.space import evaluate
    from perfmodel.measurements.table import read_kernels_for
    from perfmodel.problems import parse_gemm
    from perfmodel.units import US

    if given.kernels is None:
        kernels = rule_kernels(device, given.dtype)
    else:
        kernels = kernels_from(read_kernels_for(given.kernels, given.dtype), given.dtype)
    reasons = infeasible(device, kernels)
    can_run = reasons == ""
    workgroups, limit = occupancy_of(device, kernels)
    described = pd.DataFrame({name: getattr(kernels, name) for name in KERNEL})
    described["registers_per_thread"] = kernels.registers_per_thread.round(1)
    described["lds_bytes"] = kernels.lds_bytes.astype("int64")
    described["workgroups_per_cu"] = workgroups.astype("int64")
    described["occupancy_limit"] = [LIMITS[i] for i in limit]
    described["reason"] = reasons
    parts = []
    for text in given.gemm:
        gemm = parse_gemm(text, given.dtype)
        seconds = np.full((len(kernels), len(degrees)), np.nan)
        if can_run.any():
            seconds[can_run] = evaluate(device, gemm, kernels[can_run], degrees).seconds[0]
        for i, degree in enumerate(degrees):
            sizes = {name: int(getattr(gemm, name)[0]) for name in ("m", "n", "k", "batch")}
            part = described.assign(
                **sizes, concurrency_degree=degree, predicted_time_us=seconds[:, i] / US)
            parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    first = ["m", "n", "k", "batch", *KERNEL, "concurrency_degree", "predicted_time_us"]
    return table[[*first, *(name for name in table if name not in first)]]
