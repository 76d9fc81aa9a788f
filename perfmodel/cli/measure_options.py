"""Options of ``perfmodel measure`` turned into GEMMs, kernels, settings and jobs."""

from perfmodel.checks import one_of, positive_integer, refusal
from perfmodel.cli.options import ROUNDS_LIMIT

_SETS_LIMIT = 100_000
_MEMBERS_LIMIT = 16
_SEED_LIMIT = 2**31 - 1

#: GEMMs drawn where none are named, and rows that are repeated.
DRAWN = 60
ROWS = 300

#: A GEMM of a mixed set gets one of so many of its fastest kernels.
_FASTEST = 12

#: GEMMs that wait where the picks are verified.
_VERIFIED_WAITING = "16"

#: Options that say what is measured, first those that choose the kind of table: at most one of
#: them, but that --verify takes --waiting. Each with the other options that mean something then.
_GEMMS = ("device", "gemm", "gemms", "draw", "seed", "kernels", "dtype", "trans_b", "streams", "minutes")
_MEANT = {
    "probe": ("streams",),
    "repeat": ("device", "rows", "no_library", "seed", "dtype", "streams", "minutes"),
    "verify": (*_GEMMS, "waiting", "rounds", "no_library"),
    "mixed": (*_GEMMS, "members", "carveout"),
    "waiting": (*_GEMMS, "rounds", "no_library"),
}
_MEANT_OTHERWISE = (*_GEMMS, "degree", "rounds", "cache", "no_library")


def refuse_meaningless(given):
    """Raise `ValueError` for an option that says nothing about what is to be measured."""
    def present(name):
        return getattr(given, name) not in (None, False)

    kind = next((name for name in _MEANT if present(name)), None)
    meant = _MEANT.get(kind, _MEANT_OTHERWISE)
    every = dict.fromkeys((*_MEANT, *_MEANT_OTHERWISE, *sum(_MEANT.values(), ())))
    for name in every:
        if present(name) and name != kind and name not in meant:
            option = "--" + name.replace("_", "-")
            needed = [f"--{other}" for other in _MEANT if name in _MEANT[other]]
            raise ValueError(
                f"{option} means nothing with --{kind}" if kind
                else f"{option} means nothing without {' or '.join(needed)}")


def setting_of(given):
    """The setting that the options name."""
    from perfmodel.live.arrangement import Setting
    from perfmodel.live.plans import STORED_ALONG_K

    dtype = "fp16" if given.dtype is None else given.dtype
    one_of("--dtype", dtype, ("fp16", "bf16", "tf32", "fp8", "int8"))
    transposed = dtype in STORED_ALONG_K if given.trans_b is None else given.trans_b == "T"
    return Setting(dtype, transposed, given.cache == "cold")


def work_of(given, device, setting, seen):
    """What the options ask to measure.

    Parameters
    ----------
    given : argparse.Namespace
    device : Gpu
    setting : Setting
    seen : list of Gemms
        Of the device's fit: not to be drawn where picks are verified.

    Returns
    -------
    seed : int
    gemms, kernels : list of tuple
        That will run.
    make_jobs : callable
        Of the kernels that can run and the library's name, or None, to the jobs.
    """
    from random import SystemRandom

    from perfmodel.live.plans import refuse_unreachable

    seed = (SystemRandom().randrange(1, _SEED_LIMIT) if given.seed is None
            else positive_integer("--seed", given.seed, _SEED_LIMIT))
    if given.repeat is not None:
        gemms, kernels, make_jobs = _repeated(given, setting, seed)
        refuse_unreachable(gemms)
        return seed, gemms, kernels, make_jobs
    gemms = _gemms(given, setting.dtype, seed, {*map(_sizes, seen)} if given.verify else set())
    refuse_unreachable(gemms)
    return seed, gemms, _kernels(given.kernels), _job_maker(given, device, gemms, setting, seed)


def draws_afresh(given):
    """Whether something is drawn at random by a seed that the options do not name."""
    named = given.gemm or given.gemms
    return given.seed is None and bool(given.repeat or given.mixed or given.draw or not named)


def _repeated(given, setting, seed):
    from perfmodel.live.plans import STREAMS, repeated_jobs
    from perfmodel.measurements.table import read_measurements

    table = read_measurements(given.repeat)
    table = table[table["dtype"] == setting.dtype]
    if table.empty:
        raise ValueError(f"{given.repeat}: no row of dtype {setting.dtype} (--dtype)")
    if table["concurrency_degree"].max() > STREAMS:
        raise refusal("concurrency_degree", f"at most {STREAMS}",
                      table["concurrency_degree"].max(), given.repeat)
    jobs = repeated_jobs(table, positive_integer("--rows", _or(given.rows, ROWS), _SETS_LIMIT), seed)
    launched = [pair for job in jobs for pair in job.launched]
    kernels = list(dict.fromkeys(kernel for _, kernel in launched if kernel))
    gemms = list(dict.fromkeys(gemm for gemm, _ in launched))

    def possible(kernels, library):
        runs = {*kernels, *([None] if library else [])}
        return [job for job in jobs if all(kernel in runs for _, kernel in job.launched)]

    return gemms, kernels, possible


def _gemms(given, dtype, seed, known):
    """The GEMMs that the options name; none of the known ones is drawn."""
    from perfmodel.live.plans import draw_gemms
    from perfmodel.measurements.table import read_gemms
    from perfmodel.problems import parse_gemm

    gemms = [_sizes(parse_gemm(text, dtype)) for text in given.gemm or ()]
    if given.gemms is not None:
        gemms += read_gemms(given.gemms)
    if given.draw is not None or not gemms:
        count = positive_integer("--draw", _or(given.draw, DRAWN), _SETS_LIMIT)
        gemms += draw_gemms(count, seed, [*gemms, *known])
    return list(dict.fromkeys(gemms))


def _kernels(path):
    """Tiles of a kernel table, list of tuple; of the shipped one if there is no path."""
    from perfmodel.gpu.kernels import KERNEL
    from perfmodel.measurements.table import read_kernels
    from perfmodel.resources import data_path

    table = read_kernels(path or data_path("measurements", "h200", "kernels.csv"))
    return [tuple(int(x) for x in row)
            for row in table[list(KERNEL)].drop_duplicates().itertuples(index=False)]


def _job_maker(given, device, gemms, setting, seed):
    """A function of kernels and library's name to the jobs that the options ask for."""
    from perfmodel.live.plans import (
        STREAMS, draw_members, equal_jobs, member_jobs, waiting_jobs)

    if given.mixed is not None:
        batched = [gemm for gemm in gemms if gemm[3] > 1]
        if batched:
            raise refusal("batch", "1 with --mixed", batched[0][3],
                          f"GEMM {'x'.join(map(str, batched[0]))}")
        sets = positive_integer("--mixed", given.mixed, _SETS_LIMIT)
        size = positive_integer("--members", _or(given.members, "2"), _MEMBERS_LIMIT)
        if not 2 <= size <= len(gemms):
            raise ValueError(
                f"--members must be from 2 to the number of GEMMs ({len(gemms)}), not {size}")
        carveouts = _carveouts(_or(given.carveout, "-1,100"))
        return lambda kernels, library: member_jobs(
            device.name,
            draw_members(gemms, _fastest(device, gemms, kernels, setting), sets, size, seed),
            carveouts, setting)
    if given.waiting is not None or given.verify:
        counts = _integers("--waiting", _or(given.waiting, _VERIFIED_WAITING), STREAMS)
        rounds = _integers("--rounds", _or(given.rounds, "1,3"), ROUNDS_LIMIT)
        return lambda kernels, library: waiting_jobs(
            device.name, gemms, kernels, counts, rounds, setting, library)
    degrees = _integers("--degree", _or(given.degree, "1,2,4,8,16"), STREAMS)
    rounds = _integers(
        "--rounds", _or(given.rounds, "1" if setting.cold else "3"), ROUNDS_LIMIT)
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


def _or(option, default):
    return default if option is None else option


def _sizes(gemm):
    return tuple(int(size[0]) for size in (gemm.m, gemm.n, gemm.k, gemm.batch))


def _integers(name, text, limit):
    return sorted({positive_integer(name, part, limit) for part in text.split(",")})


def _carveouts(text):
    parts = text.split(",")
    for part in parts:
        if not part.strip().removeprefix("-").isdecimal() or not -1 <= int(part) <= 100:
            raise refusal("--carveout", "integers from -1 to 100", text)
    return list(dict.fromkeys(int(part) for part in parts))
