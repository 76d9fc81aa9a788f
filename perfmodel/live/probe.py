"""Micro-measurements of a GPU: what a device file needs and no datasheet can be trusted for."""

import statistics
import time

import torch

from perfmodel.gpu.kernels import KERNEL
from perfmodel.live import driver
from perfmodel.live.arrangement import Setting, equal
from perfmodel.live.graphs import Graphs, can_capture
from perfmodel.live.probe_kernels import chase, read, shuffle, touch
from perfmodel.live.readings import MATRIX_KERNELS, Reading
from perfmodel.live.runner import telemetry

_REPEATS = 7
_HBM_BYTES = 2**31
_BLOCK = 8192
#: Of L2 that a sweep of it fills: on some chips half of it is far from half of the compute units.
_L2_SHARE = 0.4
_SHARED_BYTES = 2**17
_WORKGROUPS_PER_CU = 4
_READ_THREADS = 1024
_PASSES = 40
_MATRIX_SIDE = 8192
_MATRIX_SECONDS = 0.5
_MATRIX_LAUNCHES = 64
_LAUNCHES = (4, 36)
_BRANCHES = (1, 9)
_CHASES = 300
#: A workgroup that finds no place begins when others end: the time doubles.
_WAITED = 1.4


def readings_of(runner, advance):
    """Readings of the GPU of a runner.

    Parameters
    ----------
    runner : runner.GpuRunner
    advance : callable
        Called with the name of each micro-measurement before it starts.

    Returns
    -------
    dict of str to readings.Reading
    """
    graphs = Graphs(can_capture())
    properties = torch.cuda.get_device_properties(0)
    units = properties.multi_processor_count
    found = _properties(runner, properties)
    clock_hz = found["clock_hz"].value if "clock_hz" in found else None
    for name, measure in (
        ("hbm", lambda: {"hbm_bytes_per_s": _hbm(graphs)}),
        ("l2", lambda: _l2(graphs, properties, units, clock_hz)),
        ("lds", lambda: _lds(graphs, units, clock_hz)),
        ("launches", lambda: _launches(graphs) if graphs.captured else {}),
        ("residency", lambda: _residency(graphs, units)),
        ("matrix", lambda: _matrix(runner, units)),
    ):
        advance(name)
        found |= measure()
    return found


def _properties(runner, properties):
    """What the driver says; what it does not say is left out."""
    known = {
        "compute_units": "multi_processor_count", "threads_per_wavefront": "warp_size",
        "registers_per_compute_unit": "regs_per_multiprocessor",
        "lds_bytes_per_compute_unit": "shared_memory_per_multiprocessor",
        "lds_bytes_per_workgroup_limit": "shared_memory_per_block_optin",
        "threads_per_workgroup_limit": "max_threads_per_block",
        "l2_bytes": "L2_cache_size", "hbm_bytes": "total_memory",
    }
    found = {}
    for field, name in known.items():
        if value := getattr(properties, name, None):
            found[field] = Reading(value, None, f"device property {name}")
    found["wavefronts_per_compute_unit"] = Reading(
        properties.max_threads_per_multi_processor // properties.warp_size, None,
        "device property max_threads_per_multi_processor over warp_size")
    if clock_khz := getattr(properties, "clock_rate", None):
        found["clock_hz"] = Reading(clock_khz * 1e3, None, "device property clock_rate")
    for field, value in driver.attributes(runner.backend).items():
        found[field] = Reading(value, None, "attribute of the driver")
    return found


def _hbm(graphs):
    source = torch.ones(_HBM_BYTES // 4, device="cuda", dtype=torch.int32)
    target = torch.empty_like(source)
    # A kernel: a plain copy in a graph is left to the copy engine, which is slower.
    return _rate(graphs, lambda stream: torch.neg(source, out=target), 2 * _HBM_BYTES,
                 f"negation of {_HBM_BYTES >> 20} MiB, bytes read and written")


def _l2(graphs, properties, units, clock_hz):
    workgroups = units
    own = int(properties.L2_cache_size * _L2_SHARE / workgroups / 4 / _BLOCK) * _BLOCK or _BLOCK
    source = torch.ones(max(own * workgroups, _SHARED_BYTES // 4), device="cuda",
                        dtype=torch.int32)
    sink = torch.empty(workgroups * _BLOCK, device="cuda", dtype=torch.int32)

    def rate(words, shared, text):
        launch = lambda stream: read[(workgroups,)](  # noqa: E731
            source, sink, _PASSES, words, _BLOCK, shared,
            num_warps=_READ_THREADS // properties.warp_size)
        return _rate(graphs, launch, 4 * words * workgroups * _PASSES, text)

    found = {"l2_bytes_per_s": rate(
        own, False, f"each workgroup reads lines of its own, {own * workgroups >> 18} MiB in all")}
    port = rate(_SHARED_BYTES // 4, True, f"all read the same {_SHARED_BYTES >> 10} KiB")
    if clock_hz:
        found["l2_bytes_per_clock_per_compute_unit"] = port.scaled(
            1 / (units * clock_hz), "; over compute units and peak clock")
    return found


def _lds(graphs, units, clock_hz):
    if not clock_hz:
        return {}
    workgroups, words = units * _WORKGROUPS_PER_CU, 4096
    sink = torch.empty(workgroups * words, device="cuda", dtype=torch.int32)
    launch = lambda stream: shuffle[(workgroups,)](  # noqa: E731
        sink, _PASSES * 5, words, 96, num_warps=8)
    rate = _rate(graphs, launch, 2 * 4 * words * workgroups * _PASSES * 5,
                 "words of 4 B written and read in turn: a lower bound")
    return {"lds_bytes_per_clock_per_compute_unit": rate.scaled(
        1 / (units * clock_hz), "; over compute units and peak clock")}


def _launches(graphs):
    sink = torch.empty(1, device="cuda", dtype=torch.int32)
    launch = lambda stream: touch[(1,)](sink)  # noqa: E731
    launch(None)

    def slope(short, long, steps):
        slopes = []
        for _ in range(_REPEATS):
            few, many = (graphs.timed(b, cold=False).seconds for b in (short, long))
            slopes.append((many - few) / steps)
        return slopes

    few, many = _LAUNCHES
    one, several = _BRANCHES
    gap = slope([[launch] * few], [[launch] * many], many - few)
    branch = slope([[launch]] * one, [[launch]] * several, several - one)
    return {
        "kernel_gap_s": Reading.of(
            gap, f"smallest kernels on one branch of a graph: from {few} to {many}, each"),
        "graph_branch_s": Reading.of(
            branch, f"smallest kernels on branches of a graph: from {one} to {several}, each"),
    }


def _residency(graphs, units):
    """Workgroups of one and of eight wavefronts that run on a compute unit at the same time."""
    # Every element tells its own place: each chain stays on a line of its own.
    source = torch.arange(units * 64 * 32, device="cuda", dtype=torch.int32)
    sink = torch.empty(units * 64, device="cuda", dtype=torch.int32)

    def most(warps):
        def seconds(per_unit):
            launch = lambda stream: chase[(units * per_unit,)](  # noqa: E731
                source, sink, _CHASES, num_warps=warps)
            launch(None)
            return graphs.timed([[launch]], cold=False).seconds

        alone = seconds(1)
        return next(n for n in range(1, 65) if n == 64 or seconds(n + 1) > _WAITED * alone)

    counts = [most(1) for _ in range(3)]
    wide = [8 * most(8) for _ in range(3)]
    return {
        "workgroups_per_compute_unit": Reading.of(
            counts, "most workgroups of one wavefront before the time doubles"),
        "wavefronts_per_compute_unit": Reading.of(
            wide, "most workgroups of 8 wavefronts before the time doubles, times 8"),
    }


def _matrix(runner, units):
    """FLOP per clock of a compute unit, by dtype: the fastest of kernels and library, sustained."""
    found = {}
    for dtype, kernels in MATRIX_KERNELS.items():
        setting = Setting(dtype, dtype in ("tf32", "fp8", "int8"))
        side = _MATRIX_SIDE // 2
        gemm = (side, side, side, 1)
        rates = []
        ready, _ = runner.prepare(kernels, [gemm], setting, lambda: None)
        for kernel in [*(tuple(row[name] for name in KERNEL) for row in ready), None]:
            try:
                rates.append(_sustained(runner, gemm, kernel, setting, units))
            except (RuntimeError, AttributeError, MemoryError):
                continue  # a library without the dtype
        if rates:
            best = max(rates, key=lambda rate: rate.value)
            found[f"matrix_{dtype}_flop_per_clock_per_compute_unit"] = best
    return found


def _sustained(runner, gemm, kernel, setting, units):
    flop = 2.0 * gemm[0] * gemm[1] * gemm[2]
    rates = []
    branches = equal(gemm, kernel, 1, _MATRIX_LAUNCHES)
    begin = time.monotonic()
    while time.monotonic() - begin < _MATRIX_SECONDS or len(rates) < 3:
        timing = runner.time(branches, setting)
        clock = runner.state().get("clock_mhz") or telemetry().get("clock_mhz")
        if not clock:
            raise RuntimeError("nobody tells the clock")
        rates.append(_MATRIX_LAUNCHES * flop / timing.seconds / (units * clock * 1e6))
    rates = rates[len(rates) // 2:]  # the clock has settled
    name = "library" if kernel is None else "kernel " + "x".join(map(str, kernel[:3]))
    return Reading.of(rates, f"{gemm[0]}^3, {name}, at the clock read meanwhile"
                             f" ({statistics.median([clock]):.0f} MHz at the end)")


def _rate(graphs, launch, count, text):
    launch(None)
    torch.cuda.synchronize()
    seconds = [graphs.timed([[launch]], cold=False).seconds for _ in range(_REPEATS)]
    return Reading.of([count / s for s in seconds], text)
