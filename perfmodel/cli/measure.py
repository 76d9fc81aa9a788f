"""``perfmodel measure``: time GEMMs on this machine's GPU, alone and together, into tables."""

import sys

from perfmodel.checks import one_of, positive_integer, positive_number, refusal
from perfmodel.cli.options import DEGREE_LIMIT, ROUNDS_LIMIT, add_json
from perfmodel.cli.text import say, say_json

_SETS_LIMIT = 100_000
_MEMBERS_LIMIT = 16
_SEED_LIMIT = 2**31 - 1

#: GEMMs drawn where none are named.
_DRAWN = 60

#: A GEMM of a mixed set gets one of so many of its fastest kernels.
_FASTEST = 12


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
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="table to write")
    what = parser.add_argument_group("which GEMMs and kernels")
    what.add_argument("--gemm", action="append", metavar="MxNxK[xBATCH]", help="may be repeated")
    what.add_argument("--gemms", metavar="FILE", help="CSV with columns m, n, k and perhaps batch")
    what.add_argument("--draw", metavar="N", help=f"draw N GEMMs at random (default {_DRAWN})")
    what.add_argument("--seed", metavar="S", help="of the draw; a fresh one if left out")
    what.add_argument("--kernels", metavar="FILE", help="CSV with tile columns (default: the 58"
                      " kernels of the shipped tables)")
    what.add_argument("--no-library", action="store_true", help="leave out cuBLAS or hipBLASLt")
    how = parser.add_argument_group("how")
    how.add_argument("--dtype", default="fp16", help="fp16 (default), bf16, tf32, fp8 or int8")
    how.add_argument("--trans-b", choices=("N", "T"), help="T: B is stored as [n, k] (default for"
                     " tf32, fp8 and int8)")
    how.add_argument("--degree", default="1,2,4,8,16", metavar="LIST", help="concurrency degrees")
    how.add_argument("--rounds", metavar="LIST", help="launches back to back on each branch"
                     " (default 3; 1 with --cache cold; 1,3 with --waiting)")
    how.add_argument("--cache", choices=("warm", "cold"), default="warm", help="L2 at the start")
    how.add_argument("--waiting", metavar="LIST", help="so many GEMMs wait, each with its own"
                     " operands, and are run 1, 2, 4 … at a time: a waiting table")
    how.add_argument("--mixed", metavar="SETS", help="different GEMMs together: so many random"
                     " sets, a table of members")
    how.add_argument("--members", default="2", metavar="N", help="of each set (default 2)")
    how.add_argument("--carveout", default="-1,100", metavar="LIST", help="shared-memory carve-outs"
                     " of mixed sets in per cent, -1: left to the driver (default -1,100)")
    how.add_argument("--streams", action="store_true", help="launch on plain streams, do not"
                     " capture graphs")
    how.add_argument("--minutes", metavar="M", help="stop when they are over")
    add_json(parser)
    parser.set_defaults(run=run)


def run(given):
    """Run the command."""
    from perfmodel.device_files import load_device
    from perfmodel.files import refuse_unwritable
    from perfmodel.live.campaign import measure
    from perfmodel.live.open_gpu import open_gpu
    from perfmodel.live.plans import LIBRARIES

    if given.device is None:
        raise ValueError("--device is needed: a name, or a file that perfmodel measure --probe made")
    device = load_device(given.device)
    setting = _setting(given)
    if not given.output.endswith((".csv", ".csv.gz")):
        raise ValueError(f"-o {given.output}: a table ends in .csv or .csv.gz")
    resources_file = _resources_file(given.output)
    for path in (given.output, resources_file):
        refuse_unwritable(path)
    minutes = given.minutes and positive_number("--minutes", given.minutes)
    seed, gemms = _gemms(given)
    kernels = _kernels(given.kernels)
    make_jobs = _job_maker(given, device, gemms, setting, seed)

    progress = sys.stderr.isatty()
    runner = open_gpu(captured=not given.streams)
    kernels, failed = _prepared(
        runner, kernels, gemms, setting, resources_file, progress)
    library = None if given.no_library else LIBRARIES[runner.backend]
    count = measure(runner, make_jobs(kernels, library), given.output, minutes, progress)
    report = {
        "output": given.output, "resources": resources_file, "seed": seed, **runner.gpu(),
        "rows": dict(count),
        "kernels_failed": {_label(kernel): reason for kernel, reason in failed.items()},
    }
    if given.json:
        say_json(report)
        return
    say(f"{report['gpu']}, driver {report['driver']}, torch {report['torch']},"
        f" triton {report['triton']}")
    for kernel, reason in report["kernels_failed"].items():
        say(f"kernel {kernel} left out: {reason}")
    for what, rows in count.items():
        say(f"{rows} rows {what}")
    say(f"written: {given.output}, {resources_file}" + (f" (seed {seed})" if seed else ""))


def _setting(given):
    from perfmodel.live.arrangement import Setting
    from perfmodel.live.plans import STORED_ALONG_K

    one_of("--dtype", given.dtype, ("fp16", "bf16", "tf32", "fp8", "int8"))
    transposed = given.dtype in STORED_ALONG_K if given.trans_b is None else given.trans_b == "T"
    return Setting(given.dtype, transposed, given.cache == "cold")


def _gemms(given):
    """The seed, if any is needed, and the GEMMs that the options name."""
    from random import SystemRandom

    from perfmodel.live.plans import draw_gemms
    from perfmodel.measurements.table import read_gemms
    from perfmodel.problems import parse_gemm

    seed = (SystemRandom().randrange(1, _SEED_LIMIT) if given.seed is None
            else positive_integer("--seed", given.seed, _SEED_LIMIT))
    named = [parse_gemm(text, given.dtype) for text in given.gemm or ()]
    gemms = [tuple(int(size[0]) for size in (g.m, g.n, g.k, g.batch)) for g in named]
    if given.gemms:
        gemms += read_gemms(given.gemms)
    if given.draw or not gemms:
        count = positive_integer("--draw", given.draw or _DRAWN, _SETS_LIMIT)
        gemms += draw_gemms(count, seed, gemms)
    return seed, list(dict.fromkeys(gemms))


def _kernels(path):
    from perfmodel.gpu.kernels import KERNEL
    from perfmodel.measurements.table import read_kernels
    from perfmodel.resources import data_path

    table = read_kernels(path or data_path("measurements", "h200", "kernels.csv"))
    return [tuple(int(x) for x in row)
            for row in table[list(KERNEL)].drop_duplicates().itertuples(index=False)]


def _job_maker(given, device, gemms, setting, seed):
    """A function of kernels and library's name to the jobs that the options ask for."""
    from perfmodel.live.plans import draw_members, equal_jobs, member_jobs, waiting_jobs

    if given.mixed and given.waiting:
        raise ValueError("--mixed and --waiting are different tables: give one of them")
    if given.mixed:
        sets = positive_integer("--mixed", given.mixed, _SETS_LIMIT)
        size = positive_integer("--members", given.members, _MEMBERS_LIMIT)
        if not 2 <= size <= len(gemms):
            raise ValueError(
                f"--members must be from 2 to the number of GEMMs ({len(gemms)}), not {size}")
        carveouts = _carveouts(given.carveout)
        return lambda kernels, library: member_jobs(
            device.name,
            draw_members(gemms, _fastest(device, gemms, kernels, setting), sets, size, seed),
            carveouts, setting)
    if given.waiting:
        counts = _integers("--waiting", given.waiting, DEGREE_LIMIT)
        rounds = _integers("--rounds", given.rounds or "1,3", ROUNDS_LIMIT)
        return lambda kernels, library: waiting_jobs(
            device.name, gemms, kernels, counts, rounds, setting, library)
    degrees = _integers("--degree", given.degree, DEGREE_LIMIT)
    rounds = _integers("--rounds", given.rounds or ("1" if setting.cold else "3"), ROUNDS_LIMIT)
    return lambda kernels, library: equal_jobs(
        device.name, gemms, kernels, degrees, rounds, setting, library)


def _fastest(device, gemms, kernels, setting):
    """The kernels of each GEMM that the model takes for fastest; all, where it has no fit."""
    import numpy as np

    from perfmodel.gpu.kernels import KERNEL, infeasible, kernels_from
    from perfmodel.gpu.space import evaluate
    from perfmodel.problems import gemms as problems

    if not device.fitted:
        return [kernels] * len(gemms)
    table = kernels_from(dict(zip(KERNEL, np.array(kernels).T)), setting.dtype)
    runs = np.flatnonzero(infeasible(device, table) == "")
    sizes = np.array(gemms).T
    seconds = evaluate(
        device, problems(*sizes, dtype=setting.dtype), table[runs], [1]).seconds[:, :, 0]
    order = np.argsort(seconds, axis=1, kind="stable")[:, :_FASTEST]
    return [[kernels[runs[i]] for i in row] for row in order]


def _prepared(runner, kernels, gemms, setting, path, progress):
    """The kernels that can run, and why others cannot; the resources are written."""
    from tqdm import tqdm

    from perfmodel.files import write_table_atomic
    from perfmodel.gpu.kernels import KERNEL
    from perfmodel.live.resources_table import joined_resources

    with tqdm(total=len(kernels), desc="compile", unit="kernel", disable=not progress) as bar:
        resources, failed = runner.prepare(kernels, gemms, setting, bar.update)
    if not resources:
        raise OSError(f"no kernel compiles for this GPU; the first: {next(iter(failed.values()))}")
    write_table_atomic(path, joined_resources(path, resources))
    return [tuple(row[name] for name in KERNEL) for row in resources], failed


def _resources_file(output):
    return output.removesuffix(".gz").removesuffix(".csv") + ".kernels.csv"


def _integers(name, text, limit):
    return sorted({positive_integer(name, part, limit) for part in text.split(",")})


def _carveouts(text):
    parts = text.split(",")
    for part in parts:
        if not part.strip().removeprefix("-").isdecimal() or not -1 <= int(part) <= 100:
            raise refusal("--carveout", "integers from -1 to 100", text)
    return list(dict.fromkeys(int(part) for part in parts))


def _label(kernel):
    m, n, u, s, w, z = kernel
    return f"{m}x{n}x{u} s{s} w{w} z{z}"
