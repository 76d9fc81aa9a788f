"""``perfmodel predict``: one GEMM, alone and together, the kernels to take and why."""

import re

from perfmodel.checks import one_of, positive_integer, refusal
from perfmodel.cli.options import (
    add_borrow, add_json, add_protocol, degree_of, device_of, kernels_of, rounds_of)
from perfmodel.cli.text import say, say_json, table

KERNEL_FORM = "TILE_MxTILE_NxDEPTH,sSTAGES,wWARPS,zSPLIT, such as 128x256x64,s4,w8,z1"

#: Largest tile side, stages, wavefronts or split accepted; more is taken for a slip.
KERNEL_LIMIT = 4096


def add_parser(commands):
    """Add the command."""
    parser = commands.add_parser(
        "predict", help="time of one GEMM alone and together, and the kernels to take",
        description="The kernel that is fastest alone and the one that is fastest together"
                    " (GO-Kernel), their times and what binds them.",
        epilog="example: perfmodel predict h200 --gemm 512x1024x2048 --degree 8")
    parser.add_argument("device", metavar="DEVICE", help="a name, or a TOML file's path")
    parser.add_argument("--gemm", required=True, metavar="MxNxK[xBATCH]", help="the problem")
    parser.add_argument("--dtype", default="fp16", help="type of the operands (fp16)")
    parser.add_argument("--degree", default="1", metavar="N", help="GEMMs running together (1)")
    add_protocol(parser)
    parser.add_argument("--kernel", metavar="KERNEL", help=f"show this one too: {KERNEL_FORM}")
    parser.add_argument(
        "--kernels", metavar="FILE", help="candidates of a CSV file instead of the rules'")
    add_borrow(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(given):
    """Run the command."""
    from perfmodel.gpu.predict import advise, as_record, predict
    from perfmodel.problems import DTYPES, parse_gemm
    from perfmodel.units import US

    one_of("--dtype", given.dtype, DTYPES)
    gemm = parse_gemm(given.gemm, given.dtype)
    cold = given.cache == "cold"
    degree, rounds = degree_of(given.degree), rounds_of(given.rounds, cold)
    device = device_of(given.device, given.parameters_from)
    kernels = kernels_of(given.kernels, device, given.dtype)
    advice = advise(device, gemm, degree, kernels, rounds, cold)
    shown = {"isolated_best": advice.isolated_best, "go_kernel": advice.go_kernel}
    if given.kernel is not None:
        kernel = _kernel(given.kernel, device, gemm)
        shown["kernel"] = predict(device, gemm, kernel, degree, rounds, cold)
    record = {
        "device": device.name,
        "gemm": {"m": int(gemm.m[0]), "n": int(gemm.n[0]), "k": int(gemm.k[0]),
                 "batch": int(gemm.batch[0]), "dtype": gemm.dtype},
        "degree": degree,
        "rounds": rounds,
        "cache": given.cache,
        "candidates": len(kernels),
        "parameters": {"calibrated": "borrowed_from" not in device.fit,
                       "from": device.fit.get("borrowed_from", device.name)},
        **{name: as_record(prediction) for name, prediction in shown.items()},
        "sequential_time_us": advice.sequential_seconds / US,
        "over_sequential": advice.over_sequential,
        "over_default": advice.over_default,
        "default_over_sequential": advice.default_over_sequential,
    }
    if given.json:
        say_json(record)
    else:
        _say(record, device.title, gemm.labels[0], list(shown))


def _kernel(text, device, gemm):
    from perfmodel.gpu.kernels import KERNEL, infeasible, kernels_from

    found = re.fullmatch(r"(\d+)x(\d+)x(\d+)[ ,]s(\d+)[ ,]w(\d+)[ ,]z(\d+)", text.strip())
    if not found:
        raise refusal("--kernel", KERNEL_FORM, text)
    sizes = {
        name: [positive_integer(name, part, KERNEL_LIMIT, f"--kernel {text}")]
        for name, part in zip(KERNEL, found.groups())}
    kernel = kernels_from(sizes, gemm.dtype)
    reason = infeasible(device, kernel)[0]
    if reason:
        needs = (f"{kernel.lds_bytes[0]:.0f} B of LDS of {device.lds_bytes_per_workgroup_limit},"
                 f" {kernel.registers_per_thread[0]:.0f} registers of"
                 f" {device.registers_per_thread_limit}, {kernel.warps[0]} wavefronts")
        raise ValueError(f"--kernel {text}: does not fit {device.name}: {reason} ({needs})")
    return kernel


_NAMES = {"isolated_best": "isolated best", "go_kernel": "GO-Kernel", "kernel": "the kernel asked"}


def _say(record, title, label, shown):
    gemm, degree = record["gemm"], record["degree"]
    cold = ", cold L2" if record["cache"] == "cold" else ""
    say(f"{label} {gemm['dtype']} on {title}, {degree} together{cold},"
        f" {record['candidates']} candidate kernels\n")
    parts = [record[name] for name in shown]
    rows = [
        ["kernel", *(p["kernel"] for p in parts)],
        ["time alone", *(f"{p['isolated_time_us']:.2f} us" for p in parts)],
        [f"time of {degree} together", *(f"{p['concurrent_time_us']:.2f} us" for p in parts)],
        ["90 % interval", *(_interval(p["interval_90_us"]) for p in parts)],
        ["workgroups", *(str(p["workgroups"]) for p in parts)],
        ["workgroups a CU", *(f"{p['workgroups_per_cu']} ({p['occupancy_limit']})" for p in parts)],
        ["waves", *(f"{p['waves']:.2f}" for p in parts)],
        ["binds", *(p["binds"].replace("_", " ") for p in parts)],
        *(
            [f"  {term.replace('_', ' ')}", *(f"{p['breakdown_us'][term]:.2f} us" for p in parts)]
            for term in parts[0]["breakdown_us"]
        ),
    ]
    say(table(["", *(_NAMES[name] for name in shown)], rows))
    say(f"\n{degree} one after the other: {record['sequential_time_us']:.2f} us")
    say(f"default concurrency over sequential: {record['default_over_sequential']:.2f}x")
    say(f"GO-Kernel over sequential: {record['over_sequential']:.2f}x,"
        f" over default concurrency: {record['over_default']:.2f}x")
    if not record["parameters"]["calibrated"]:
        say(f"\nnote: parameters of {record['parameters']['from']}, not calibrated on this chip")
    for name, part in zip(shown, parts):
        if part["outside_calibrated_range"]:
            say(f"\nnote: {_NAMES[name]} is outside the calibrated range: "
                + ", ".join(part["outside_calibrated_range"]))


def _interval(ends):
    return f"{ends[0]:.2f} to {ends[1]:.2f} us" if ends else "not stated"
