"""Isolated and concurrent time: properties over random problems, kernels and degrees."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.device_files import load_device
from perfmodel.devices import replace_fields
from perfmodel.equations import cache, graph
from perfmodel.gpu.kernels import kernel_space, kernels_from, occupancy_of
from perfmodel.gpu.machine import Machine, machine_of
from perfmodel.gpu.parameters import borrowed
from perfmodel.gpu.space import evaluate
from perfmodel.gpu.breakdown import TERMS, breakdown
from perfmodel.gpu.timing import ROUNDS, concurrent_time, costs_of, isolated_time
from perfmodel.problems import gemms

H200 = load_device("h200")
SPACE = kernel_space(H200)
OCCUPANCY, _ = occupancy_of(H200, SPACE)
MACHINE = machine_of(H200, "fp16")

SIDE = st.integers(1, 8192)
BATCH = st.integers(1, 6)
DEGREE = st.integers(1, 64)
KERNEL = st.integers(0, len(SPACE) - 1)
MANY = settings(max_examples=60, derandomize=True, deadline=None)
#: Each example evaluates many kernels and degrees.
FEW = settings(max_examples=12, derandomize=True, deadline=None)
#: Degrees of an example that takes a whole axis of them.
DEGREES = np.array([1, 2, 3, 4, 8, 16, 32])
#: Every seventh kernel: each tile, depth, stage and split is among them.
SOME = np.arange(0, len(SPACE), 7)


def seconds(device, problem, kernels=SPACE[SOME], degrees=DEGREES):
    """Time, of shape (kernel, degree)."""
    return evaluate(device, problem, kernels, degrees).seconds[0]


@MANY
@given(SIDE, SIDE, SIDE, BATCH, KERNEL)
def test_degree_1_is_the_isolated_time(m, n, k, batch, at):
    inputs = MACHINE, gemms(m, n, k, batch), SPACE[[at]], OCCUPANCY[[at]]
    assert concurrent_time(*inputs, 1) == isolated_time(*inputs)
    # One branch is a serial chain: a launch takes as long, however many there are, but for what
    # the first of a graph costs more.
    footprint = costs_of(MACHINE, inputs[1], inputs[2]).footprint
    missing = cache.miss_fraction(footprint, MACHINE.l2_capacity_bytes)
    reading = graph.memory_share(missing, MACHINE.swept_start_share, False, 0.0)
    first = reading * MACHINE.graph_start_s * (1 / ROUNDS - 1 / 50)
    fifty = concurrent_time(*inputs, 1, rounds=50)
    assert fifty + first == pytest.approx(isolated_time(*inputs), rel=1e-12)


@MANY
@given(SIDE, SIDE, SIDE, BATCH, DEGREE, KERNEL)
def test_the_breakdown_sums_to_the_time(m, n, k, batch, degree, at):
    inputs = MACHINE, gemms(m, n, k, batch), SPACE[[at]], OCCUPANCY[[at]], degree
    total = concurrent_time(*inputs)
    terms = breakdown(*inputs)
    assert set(terms) == set(TERMS)
    assert np.sum(list(terms.values()), axis=0) == pytest.approx(total, rel=1e-9)


@FEW
@given(SIDE, SIDE, SIDE, BATCH)
def test_no_term_but_the_feed_is_negative(m, n, k, batch):
    inputs = (
        MACHINE, gemms(m, n, k, batch)[:, None], SPACE[SOME, None], OCCUPANCY[SOME, None], DEGREES)
    total = concurrent_time(*inputs)
    terms = breakdown(*inputs)
    for name in set(TERMS) - {"operand_feed"}:
        assert (terms[name] >= -1e-8 * total).all(), name


#: Where the main loop waits for latency and the matrix pipe is slower than the feed: its share of
#: `core`, by which the clock drops, falls when the feed slows, while the step stays as it is.
LATENCY_BOUND = gemms(8192, 8192, 1024), dict(
    macro_tile_m=[64], macro_tile_n=[128], depth_u=[32], stages=[2], warps=[4], split_k=[8])
def test_the_feed_term_is_not_negative():
    problem, tile = LATENCY_BOUND
    kernel = kernels_from(tile)
    occupancy, _ = occupancy_of(H200, kernel)
    terms = breakdown(MACHINE, problem, kernel, occupancy, 1)
    assert terms["operand_feed"] >= 0


def test_a_slower_feed_is_not_faster():
    problem, tile = LATENCY_BOUND
    slower = replace_fields(H200, {"l2_bytes_per_clock_per_compute_unit": 57.6})
    kernel = kernels_from(tile)
    assert seconds(slower, problem, kernel)[0, 0] >= seconds(H200, problem, kernel)[0, 0]


@FEW
@given(SIDE, SIDE, SIDE, BATCH)
def test_never_above_the_peak(m, n, k, batch):
    problem = gemms(m, n, k, batch)
    peak = H200.compute_units * H200.matrix_rate("fp16") * H200.clock_hz
    assert (problem.flop * DEGREES / seconds(H200, problem) <= peak).all()


@FEW
@given(st.integers(1, 600), st.integers(1, 600), SIDE)
def test_never_above_the_peak_of_the_compute_units_at_work(m, n, k):
    # A launch of fewer workgroups than compute units leaves the others idle.
    problem, kernels = gemms(m, n, k), SPACE[SOME]
    launched = (
        np.ceil(m / kernels.macro_tile_m) * np.ceil(n / kernels.macro_tile_n) * kernels.split_k)
    units = np.minimum(launched[:, None] * DEGREES, H200.compute_units)
    peak = units * H200.matrix_rate("fp16") * H200.clock_hz
    assert (problem.flop * DEGREES / seconds(H200, problem) <= peak).all()


@FEW
@given(SIDE, SIDE, SIDE, BATCH)
def test_more_together_are_not_done_sooner(m, n, k, batch):
    assert (np.diff(seconds(H200, gemms(m, n, k, batch))) >= 0).all()


@FEW
@given(
    SIDE, SIDE, SIDE, BATCH,
    st.sampled_from([
        {"compute_units": 131}, {"compute_units": 120}, {"compute_units": 108},
        {"compute_units": 66}, {"compute_units": 17}, {"compute_units": 1}]))
def test_fewer_compute_units_are_not_faster(m, n, k, batch, change):
    assert_slower(change, gemms(m, n, k, batch))


@pytest.mark.parametrize(
    "change",
    [
        {"hbm_bytes_per_s": 4.0e12},
        {"hbm_bytes_per_s": 1.0e12},
        {"l2_bytes": 50 * 2**20},
        {"l2_bytes": 2**20},
        {"clock_hz": 1.83e9},
        {"clock_hz": 0.9e9},
        {"matrix_fp16_flop_per_clock_per_compute_unit": 4000.0},
        {"matrix_fp16_flop_per_clock_per_compute_unit": 1024.0},
    ],
    ids=str,
)
@settings(max_examples=6, derandomize=True, deadline=None)
@given(m=SIDE, n=SIDE, k=SIDE, batch=BATCH)
def test_a_lesser_device_is_not_faster(change, m, n, k, batch):
    assert_slower(change, gemms(m, n, k, batch))


def assert_slower(change, problem):
    # The smooth maximum of chain and flow lets a launch gap that a flow of many waves hides take
    # up to 3e-7 of a time with it: far below any rounding of a measurement.
    lesser = seconds(replace_fields(H200, change), problem)
    assert (lesser >= seconds(H200, problem) * (1 - 1e-6)).all()


def test_every_number_of_compute_units_at_the_edges_of_waves():
    # 1 to 140 units at sizes that fill 120, 132, 133, 264 and 265 workgroups of 128 x 128.
    kernels, degree = SPACE[SOME], np.array([[1], [2], [8]])
    units = np.arange(1, 141)
    machine = replace(MACHINE, compute_units=units)
    for m, n in ((1280, 1536), (1536, 1408), (2432, 896), (3072, 1408), (6784, 640)):
        time = concurrent_time(
            machine, gemms(m, n, 512)[:, None, None], kernels[:, None, None],
            OCCUPANCY[SOME, None, None], degree)
        assert time.shape == (len(SOME), 3, 140)
        assert (np.diff(time) <= 1e-6 * time[..., 1:]).all()


@FEW
@given(SIDE, SIDE, SIDE, BATCH)
def test_a_newer_chip_with_faster_memory_is_not_slower(m, n, k, batch):
    # The same compute units; the H100 with the H200's parameters.
    h100 = borrowed(load_device("h100-sxm"), H200)
    problem = gemms(m, n, k, batch)
    assert (seconds(h100, problem) >= seconds(H200, problem) * (1 - 1e-9)).all()


@MANY
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 512), st.integers(2, 6), KERNEL, DEGREE)
def test_a_batch_is_its_workgroups(rows, columns, k, batch, at, degree):
    # Whole tiles: b problems of m rows launch what one of b m rows does. The footprints differ (B
    # is read once or b times), but both stay far inside L2: at most 6 (1024 + 1024) 512 x 2 B and
    # the 4 MiB of C, of 31 MB; beyond 1/4 of it, where misses begin to show, nothing is asserted.
    kernel, held = SPACE[[at]], OCCUPANCY[[at]]
    m, n = rows * kernel.macro_tile_m, columns * kernel.macro_tile_n
    several, one = gemms(m, n, k, batch), gemms(batch * m, n, k)
    footprint = degree * batch * (m * k + k * n + 2 * m * n) * 2
    if footprint < MACHINE.l2_capacity_bytes / 4:
        time = concurrent_time(MACHINE, several, kernel, held, degree)
        assert time == pytest.approx(concurrent_time(MACHINE, one, kernel, held, degree), rel=1e-4)


@FEW
@given(SIDE, SIDE, SIDE, BATCH, KERNEL, DEGREE)
def test_a_scalar_is_an_element_of_the_arrays(m, n, k, batch, at, degree):
    problems = gemms([m, n, 77], [n, k, 99], [k, m, 111], [batch, 1, 2])
    degrees = np.array([degree, 1, 7])
    kernels, held = SPACE[[at, 0, 5]], OCCUPANCY[[at, 0, 5]]
    whole = concurrent_time(
        MACHINE, problems[:, None, None], kernels[None, :, None], held[None, :, None], degrees)
    assert whole.shape == (3, 3, 3)
    for i, j, c in np.ndindex(whole.shape):
        alone = concurrent_time(MACHINE, problems[i], kernels[j], held[j], degrees[c])
        # NumPy's powers of arrays and of scalars differ in the last bit on some processors.
        assert alone == pytest.approx(whole[i, j, c], rel=1e-13)


def test_the_machine_may_be_an_array():
    problem, at = gemms(1000, 1000, 1000), 100
    rates = np.array([1e12, 2e12, 4e12])
    together = concurrent_time(
        replace(MACHINE, hbm_bytes_per_s=rates), problem, SPACE[at], OCCUPANCY[at], 16)
    alone = [
        concurrent_time(replace(MACHINE, hbm_bytes_per_s=r), problem, SPACE[at], OCCUPANCY[at], 16)
        for r in rates]
    assert together.tolist() == np.concatenate(alone).tolist()


@FEW
@given(SIDE, SIDE, SIDE, BATCH)
def test_same_input_same_bits(m, n, k, batch):
    problem = gemms(m, n, k, batch)
    assert seconds(H200, problem).tobytes() == seconds(H200, problem).tobytes()


@FEW
@given(SIDE, SIDE, SIDE, st.randoms(use_true_random=False))
def test_the_order_of_kernels_is_of_no_account(m, n, k, random):
    problem, order = gemms(m, n, k), SOME.tolist()
    random.shuffle(order)
    shuffled = seconds(H200, problem, SPACE[order])
    straight = dict(zip(SOME.tolist(), seconds(H200, problem).tolist()))
    assert shuffled.tolist() == [straight[at] for at in order]


def test_a_kernel_that_does_not_fit_has_no_time():
    # 4 x (256 + 256) x 128 x 2 B = 512 KiB of LDS
    tile = dict(macro_tile_m=[256, 128], macro_tile_n=[256, 128], depth_u=[128, 64], stages=[4, 3],
                warps=[8, 8], split_k=[1, 1])
    kernels = kernels_from(tile)
    time = seconds(H200, gemms(512, 512, 512), kernels)
    assert np.isnan(time).all(axis=1).tolist() == [True, False]
    terms = breakdown(MACHINE, gemms(512, 512, 512), kernels, occupancy_of(H200, kernels)[0], 4)
    assert all(np.isnan(term).tolist() == [True, False] for term in terms.values())


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2**24, 2**24, 2**24, 2**24), (1, 2**24, 1, 1)])
def test_extreme_sizes_have_a_finite_time(sizes):
    time = seconds(H200, gemms(*sizes), degrees=[1, 1024])
    assert np.isfinite(time).all()
    assert (time > 1e-6).all()


def test_every_field_of_the_machine_is_used():
    # A what-if that changes nothing is a parameter ignored.
    problems = gemms([64, 1001, 4096, 8192], [64, 1003, 4096, 8192], [64, 1007, 4096, 8192])
    kernels = replace(SPACE, serialised=np.arange(len(SPACE)) % 2 == 0)
    inputs = (problems[:, None, None], kernels[None, :, None], OCCUPANCY[None, :, None], DEGREES)
    # Once over: a graph of little work waits for the next replay.
    state = np.array([False, True])[:, None, None, None]
    time = concurrent_time(MACHINE, *inputs, rounds=1, cold=state)
    # Those of members act on different GEMMs together only.
    for name in {field.name for field in fields(Machine) if "member" not in field.name}:
        other = replace(MACHINE, **{name: getattr(MACHINE, name) * 0.9})
        assert (concurrent_time(other, *inputs, rounds=1, cold=state) != time).any(), name


@MANY
@given(SIDE, SIDE, SIDE, BATCH, KERNEL, DEGREE, st.integers(1, 20))
def test_a_cold_cache_costs_once(m, n, k, batch, at, degree, rounds):
    inputs = MACHINE, gemms(m, n, k, batch), SPACE[[at]], OCCUPANCY[[at]], degree
    # A graph that starts cold does not follow at another's heels: no least time between replays.
    alone = replace(MACHINE, graph_interval_s=0.0)
    warm = [concurrent_time(alone, *inputs[1:], count) * count for count in (1, rounds)]
    cold = [concurrent_time(*inputs, count, cold=True) * count for count in (1, rounds)]
    extra = cold[0] - warm[0]
    assert extra >= 0
    if degree <= 8:
        assert cold[1] - warm[1] == pytest.approx(extra, rel=1e-6, abs=1e-12)


def test_a_cold_start_by_hand():
    # A GEMM of one tile: nothing to read but what a start reads, a load and 3 x 64 x 64 x 2 B.
    inputs = gemms(64, 64, 64), SPACE[[0]], OCCUPANCY[[0]], 1, 1
    none = replace(MACHINE, graph_interval_s=0.0, hbm_bytes_per_s=1e30)
    warm, cold = (concurrent_time(none, *inputs, cold=state) for state in (False, True))
    load = MACHINE.load_latency_clk * MACHINE.miss_latency_share / MACHINE.clock_hz
    start = MACHINE.graph_start_s * MACHINE.cold_start_share
    # The steps wait for the load too, some of it: one step here, of one load.
    assert start + load < cold - warm < start + 3 * load


def test_a_worked_time():
    # One workgroup of 64 x 64 x 64, one step, with round parameters and nothing else in the way:
    # matrix 2 x 64^3 / 2^10 = 512; LDS 16 KiB / 2^60, feed 16 KiB / 2^60: about 0; core 512.
    # exponent 2 (3 - 1)^2 = 8; V8(512, 400 / (3 - 1) = 200) = 512 (1 + (200/512)^8)^(1/8), so
    # 512.0347
    # cycles = 400 + 512.0347 + 64 x 64 x 2 / 64 + 1000 = 2040.0347; at 1 GHz, and a gap of 1 us.
    machine = Machine(**dict.fromkeys((field.name for field in fields(Machine)), 0.0))
    machine = replace(
        machine, compute_units=10, clock_hz=1e9, matrix_flop_per_clk=2.0**10,
        port_bytes_per_clk=2.0**60, lds_bytes_per_clk=2.0**60, store_bytes_per_clk=64.0,
        atomic_bytes_per_clk=64.0, l2_capacity_bytes=1e12, hbm_bytes_per_s=1e12,
        load_latency_clk=400.0, workgroup_start_clk=1000.0, launch_gap_s=1e-6, clock_drop_flop=1.0,
        overlap_exponent=2.0)
    kernel = kernels_from(dict(
        macro_tile_m=[64], macro_tile_n=[64], depth_u=[64], stages=[3], warps=[4], split_k=[1]))
    (time,) = isolated_time(machine, gemms(64, 64, 64), kernel, np.array([2.0]))
    step = 512 * (1 + (200 / 512) ** 8) ** 0.125
    assert time == pytest.approx(1e-6 + (400 + step + 128 + 1000) * 1e-9, rel=1e-9)
    # 25 workgroups on 10 units of 2: one full wave of 2 residents, a partial one of 1.
    # Two in lock-step: V8(1024, 200); 400 + 1024.0002 + 2 x 128 + 1000; then the time above.
    (two,) = isolated_time(machine, gemms(64, 64, 64, 25), kernel, np.array([2.0]))
    full = 1024 * (1 + (200 / 1024) ** 8) ** 0.125
    assert two == pytest.approx(
        1e-6 + (400 + full + 256 + 1000 + 400 + step + 128 + 1000) * 1e-9, rel=1e-9)
