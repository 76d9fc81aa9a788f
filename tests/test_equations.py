"""Equations of the GPU model: hand-worked values, limits, monotony, broadcasting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.equations import (
    cache, contention, graph, loop, occupancy, power, roofline, tiles, waves)
from perfmodel.equations.smooth import smooth_max

#: Function, arguments, value; the arithmetic is in the comment above each.
WORKED = [
    # ceil(1000/128) = 8, ceil(300/64) = 5, 8 x 5 x 3 x 2
    (tiles.workgroups, (1000, 300, 3, 128, 64, 2), 240),
    # one row, one column: one tile all the same
    (tiles.workgroups, (1, 1, 1, 256, 256, 1), 1),
    # 1000 x 300 of 8 x 128 x 5 x 64 = 327,680
    (tiles.tile_efficiency, (1000, 300, 128, 64), 300_000 / 327_680),
    (tiles.tile_efficiency, (256, 128, 128, 64), 1),
    # 1000 / (32 x 3) = 10.4
    (tiles.depth_steps, (1000, 32, 3), 11),
    # exactly 8
    (tiles.depth_steps, (1024, 64, 2), 8),
    # 2 x 64 x 32 x 128
    (tiles.step_flop, (64, 32, 128), 524_288),
    # (64 + 32) x 128 x 1 byte of fp8
    (tiles.step_bytes, (64, 32, 128, 1), 12_288),
    # 64 rows of 128 x 4 B = four lines each
    (tiles.row_requests, (64, 128, 4), 256),
    # 256 rows of 32 x 1 B: a quarter of a line each, a request all the same
    (tiles.row_requests, (256, 32, 1), 256),
    # k: 1000 x 2 = 15.6 lines, rows of 64 x 2 = 128 B: half of 128 rows;
    # n: 1001 x 2 = 15.6 lines, rows of 64 x 2 B: half of 64 rows
    # 2000 B: starts at 16 B steps, 7/8 of 128 rows; 2002 B: 2 B steps, 126/128 of 64 rows
    (tiles.straddled_lines, (1000, 1001, 128, 64, 64, 2), 112 + 63),
    # n crosses, but a row of B is 32 x 2 = 64 B, shorter than a line; k does not
    # rows of 64 B of B at 2 B steps: 62/128 of 64 rows
    (tiles.straddled_lines, (1024, 1001, 128, 32, 64, 2), 31),
    # k of 32 elements: 64 B apart, rows of 128 B: half of 128
    (tiles.straddled_lines, (1056, 1024, 128, 128, 64, 2), 64),
    # 128/64 x 64 x 2/32 = 8 instructions; two warpgroups, one for each 64 rows: 32 (64 + 256) B
    (tiles.matrix_read_bytes, (128, 256, 64, 8, 2), 8 * 10_240),
    # 64/64 x 64 x 2/32 = 4; two warpgroups side by side on 64 rows: 32 (64 x 2 + 128) B
    (tiles.matrix_read_bytes, (64, 128, 64, 8, 2), 4 * 8_192),
    # fewer rows than C's edge leaves: min(128, 100) min(64, 50)
    (tiles.stored_elements, (100, 50, 128, 64), 5_000),
    (tiles.stored_elements, (1000, 500, 128, 64), 8_192),
    # 700 / (132 x 2)
    (waves.waves, (700, 132, 2), 700 / 264),
    (waves.residents, (132, 132), 1),
    (waves.residents, (265, 132), 3),
    # batch 3, fp32: 3 (4 (10 x 30 + 30 x 20) + 4 x 10 x 20) = 3 (3600 + 800)
    (roofline.gemm_bytes, (10, 20, 30, 3, 4, 4), 13_200),
    (roofline.arithmetic_intensity, (600, 4), 150),
    # 3e9 / 1e12 = 3 ms against 5e9 / 1e12 = 5 ms
    (roofline.roofline_time, (3e9, 5e9, 1e12, 1e12), 5e-3),
    (roofline.roofline_time, (7e9, 5e9, 1e12, 1e12), 7e-3),
    # 500 x 4e12 = 2e15 is above the peak
    (roofline.roofline_flop_per_s, (500.0, 1e15, 4e12), 1e15),
    # footprint twice the capacity: 1 / (1 + 1/256); half of it: 1 / (1 + 256)
    (cache.miss_fraction, (2.0, 1.0), 256 / 257),
    (cache.miss_fraction, (1.0, 2.0), 1 / 257),
    # 8 GB, a quarter misses, 4 TB/s
    (cache.hbm_seconds, (8e9, 0.25, 4e12), 5e-4),
    # 300 (1 + 2 x 0.5)
    (cache.load_latency, (300.0, 2.0, 0.5), 600),
    (cache.load_latency, (300.0, 2.0, 0.0), 300),
    # (4096 + 10 x 64 + 20 x 4) / 32 = 4816 / 32
    (loop.feed_cycles, (4096.0, 64.0, 4.0, 10.0, 20.0, 32.0), 150.5),
    # 8192 / 1024 x 1.5
    (loop.matrix_cycles, (8192.0, 1024.0, True, 0.5), 12),
    (loop.matrix_cycles, (8192.0, 1024.0, False, 0.5), 8),
    # three equal costs: 3^(1/8)
    (loop.core_cycles, (100.0, 100.0), 100 * 2**0.125),
    (loop.unit_cycles, (100.0, 0.0), 100),
    # core 3 x 100 beside (500 + 100) / (3 - 1) = 300: equal, 2^(1/8)
    (loop.step_cycles, (3, 100.0, 100.0, 300.0, 3, 2.0), 300 * 3**0.125),
    # nothing exposed
    (loop.step_cycles, (3, 100.0, 0.0, 0.0, 2, 3.0), 300),
    # 4096 x 4 / 16
    (loop.store_cycles, (4096.0, 4.0, 16.0), 1_024),
    # 500 + 0.5 x min(2, 4 - 1) x 80 + 2 x 300 + 3 x 40 + 1000 = 500 + 80 + 600 + 120 + 1000
    (contention.lockstep_cycles, (3, 2, 300.0, 80.0, 500.0, 4, 40.0, 1000.0, 0.5), 2_300),
    # 12 x 90 + 20 + 700
    (contention.interleaved_cycles, (12, 90.0, 20.0, 700.0), 1_800),
    # best = max(1000, 3 x 500) = 1500, 16^-0.5 = 1/4: 1500 + (2100 - 1500)/4
    (contention.workgroup_cycles, (3, 2100.0, 1000.0, 500.0, 16, 0.5), 1_650),
    # lock-step is already below the best: nothing to gain
    (contention.workgroup_cycles, (3, 1200.0, 1000.0, 500.0, 16, 0.5), 1_500),
    # 1e-6 x (5.5 - 1.5)^2
    (graph.branch_start_seconds, (5, 3, 1e-6), 3.25e-6),
    (graph.branch_start_seconds, (12, 3, 1e-6), 14.25e-6),
    (graph.branch_start_seconds, (12, 1, 1e-6), 10.25e-6),
    (graph.branch_start_seconds, (1, 3, 1e-6), 0),
    (graph.memory_share, (0.5, 0.4, True, 1.2), 2.2),
    (graph.memory_share, (0.5, 0.4, False, 1.2), 1.2),
    # 2 + 10 beside 5 + 3
    (graph.graph_seconds, (10.0, 2.0, 5.0, 3.0), 12),
    # 2 + 1 beside 5 + 3: too little work to fill the time between replays
    (graph.graph_seconds, (1.0, 2.0, 5.0, 3.0), 8),
    # 330 / 132 = 2.5; 2.5 + 0.4 x 0.5 = 2.7; half of that
    (contention.mean_residents, (330, 132, 4, 0.5, 0.4), 1.35),
    # fewer than one a unit: 1; more than fit: the occupancy
    (contention.mean_residents, (13, 132, 4, 1.0, 0.5), 1),
    (contention.mean_residents, (9999, 132, 4, 1.0, 0.5), 4),
    # 2 x 6 / (2 x 6 + 0.5 x 8)
    (contention.overlap_share, (2, 6.0, 8.0, 0.5), 0.75),
    # 1 + 3 x 5 + 4
    (contention.drained_seconds, (1.0, 3.0, 5.0, 4.0), 20),
    # beside HBM as long: 2^(1/2.5)
    (contention.single_branch_seconds, (20.0, 20.0), 20 * 2**0.4),
    # 2 (1 + 3 x 5): 2.1 waves alone are three launches' worth of a wave
    (contention.chain_seconds, (2, 1.0, 2.1, 5.0), 32),
    # (2 x 3 + 0.5) x 4 + 2 x 1 x max(0, 1 - 3 + 3/4)
    (contention.flow_seconds, (2, 3.0, 4.0, 1.0, 4, 0.5, 99.0), 26),
    # 2 x 12 if each round drained: less
    (contention.flow_seconds, (2, 3.0, 4.0, 1.0, 4, 0.5, 12.0), 24),
    # less than a wave: no tail; gaps 2 x 1 x (1 - 0.5 + 0.5/4) = 1.25
    (contention.flow_seconds, (2, 0.5, 4.0, 1.0, 4, 0.5, 99.0), 5.25),
    # one wave exactly is not more than one
    (contention.flow_seconds, (2, 1.0, 4.0, 0.0, 4, 0.5, 99.0), 8),
    # 10 + 2 beside 11.5 + 0.25 x 2: equal, 2^(1/8)
    (contention.branches_seconds, (10.0, 11.5, 2.0, 0.25, 0.0), 12 * 2**0.125),
    # half of 0.8 reached at f0
    (power.power_cycles, (500.0, 1e9, 0.8, 1e9), 200.0),
    (power.power_cycles, (500.0, 0.0, 0.8, 1e9), 0),
    (occupancy.round_up, (1, 256), 256),
    (occupancy.round_up, (512, 256), 512),
    # 3 (168 x 32 = 5376, rounded to itself) a SIMD of 16384; 12 wavefronts / 8
    (occupancy.workgroups_by_registers, (168, 8, 65536, 256, 4, 32), 1),
    # 41 x 32 = 1312 -> 1536; 16384 / 1536 = 10.7; 40 wavefronts / 4
    (occupancy.workgroups_by_registers, (41, 4, 65536, 256, 4, 32), 10),
    # 100000 + 1024 -> 101120 (790 x 128); 233472 / 101120 = 2.3
    (occupancy.workgroups_by_lds, (100_000, 233_472, 1024, 128), 2),
]


@pytest.mark.parametrize(("equation", "arguments", "value"), WORKED)
def test_worked_by_hand(equation, arguments, value):
    assert float(equation(*arguments)) == pytest.approx(value, rel=1e-12)


# NumPy's powers of arrays and of scalars differ in the last bit on some processors.
ROUNDING = 1e-13

EQUATIONS = {equation.__name__: (equation, arguments) for equation, arguments, _ in WORKED}


@pytest.mark.parametrize("name", EQUATIONS)
def test_a_scalar_is_an_element_of_an_array(name):
    equation, arguments = EQUATIONS[name]
    alone = equation(*arguments)
    arrays = [np.array([argument, argument, argument]) for argument in arguments]
    np.testing.assert_allclose(equation(*arrays), [alone] * 3, rtol=ROUNDING)


@pytest.mark.parametrize("name", EQUATIONS)
def test_axes_broadcast(name):
    # The first argument along axis 0, the second along axis 1: row by row the same.
    equation, (first, second, *rest) = EQUATIONS[name]
    a, b = np.array([first, first * 2]), np.array([second, second * 2, second * 3])
    grid = np.asarray(equation(a[:, None], b[None, :], *rest))
    assert grid.shape == (2, 3)
    alone = [equation(a[1], other, *rest) for other in b]
    np.testing.assert_allclose(grid[1], alone, rtol=ROUNDING)


# straddled_lines compares k with whole lines: NaN counts as one that straddles.
@pytest.mark.parametrize("name", sorted(EQUATIONS.keys() - {"straddled_lines"}))
def test_nan_goes_through(name):
    equation, (first, *rest) = EQUATIONS[name]
    value = equation(np.array([np.nan, first]), *rest)
    assert np.isnan(value).tolist() == [True, False]


def test_last_wave():
    # 700 = 2 x 264 + 172
    whole, rest = waves.last_wave(700, 132, 2)
    assert (whole, rest) == (2, 172)
    # Exactly full: nothing is left.
    whole, rest = waves.last_wave(np.array([263, 264, 265]), 132, 2)
    assert (whole.tolist(), rest.tolist()) == ([0, 1, 1], [263, 0, 1])


COSTS = st.lists(st.floats(0, 1e9), min_size=1, max_size=4)


@settings(max_examples=50, derandomize=True)
@given(COSTS, st.floats(1, 50))
def test_smooth_max_lies_between_largest_and_sum(costs, exponent):
    value = smooth_max(exponent, *costs)
    assert max(costs) * (1 - 1e-12) <= value <= sum(costs) * (1 + 1e-12)


@settings(max_examples=50, derandomize=True)
@given(COSTS, st.floats(1, 50), st.floats(1e-12, 1e12))
def test_smooth_max_has_no_unit(costs, exponent, factor):
    scaled = smooth_max(exponent, *(factor * cost for cost in costs))
    assert scaled == pytest.approx(factor * smooth_max(exponent, *costs), rel=1e-9, abs=1e-300)


@settings(max_examples=50, derandomize=True)
@given(COSTS, st.floats(1, 50), st.floats(0, 1e9))
def test_smooth_max_never_falls_when_a_cost_grows(costs, exponent, more):
    grown = smooth_max(exponent, costs[0] + more, *costs[1:])
    assert grown >= smooth_max(exponent, *costs) * (1 - 1e-12)


def test_smooth_max_limits():
    assert smooth_max(1, 2.0, 3.0, 5.0) == 10
    assert smooth_max(1e6, 2.0, 3.0, 5.0) == pytest.approx(5, rel=1e-9)
    assert smooth_max(8, 0.0, 0.0) == 0
    # 3e200^8 is beyond float64
    assert smooth_max(8, 3e200, 0.0) == 3e200


#: Equation, arguments, index of the one that grows, and whether the value then grows or falls.
MONOTONE = [
    (tiles.workgroups, (100, 300, 1, 128, 64, 1), 0, 1),
    (tiles.workgroups, (100, 300, 1, 16, 64, 1), 3, -1),
    (tiles.depth_steps, (100, 32, 1), 0, 1),
    (cache.miss_fraction, (1e6, 3e7), 0, 1),
    (cache.miss_fraction, (1e7, 1e6), 1, -1),
    (cache.load_latency, (400.0, 1.2, 0.01), 2, 1),
    (loop.step_cycles, (1, 200.0, 256.0, 500.0, 3, 3.0), 0, 1),
    (loop.step_cycles, (1, 200.0, 256.0, 5000.0, 2, 3.0), 4, -1),
    (loop.matrix_cycles, (1e6, 100.0, False, 0.5), 1, -1),
    (contention.lockstep_cycles, (1, 10, 300.0, 80.0, 400.0, 3, 40.0, 1000.0, 0.5), 0, 1),
    (contention.workgroup_cycles, (2, 4600.0, 3000.0, 2050.0, 1, 0.25), 4, -1),
    (graph.branch_start_seconds, (1, 3, 1e-6), 0, 1),
    (contention.mean_residents, (20, 132, 8, 1.0, 0.5), 0, 1),
    (contention.mean_residents, (900, 20, 8, 1.0, 0.5), 1, -1),
    (contention.chain_seconds, (3, 1e-6, 0.1, 5e-6), 2, 1),
    (contention.flow_seconds, (3, 0.1, 5e-6, 1e-6, 4, 0.5, 1.0), 1, 1),
    (power.power_cycles, (500.0, 1e9, 0.8, 1e10), 0, 1),
    (waves.residents, (5, 132), 0, 1),
]


@pytest.mark.parametrize(("equation", "arguments", "at", "sign"), MONOTONE)
def test_monotone(equation, arguments, at, sign):
    grown = [*arguments]
    grown[at] = arguments[at] * np.arange(1, 61)
    steps = np.diff(equation(*grown)) * sign
    assert (steps >= 0).all()
    assert (steps > 0).any()


def test_lockstep_of_one_branch_is_not_shuffled():
    # c = 1: 1^-p = 1 whatever p
    assert contention.workgroup_cycles(2, 4600.0, 3000.0, 2050.0, 1, 2.0) == 4600
    # endless branches: the best case
    far = contention.workgroup_cycles(2, 4600.0, 3000.0, 2050.0, 1e30, 2.0)
    assert far == pytest.approx(4100)


def test_the_roofline_meets_at_the_ridge():
    # P / B = 1e15 / 4e12 = 250 FLOP/B: both limits give the same
    assert roofline.roofline_flop_per_s(250.0, 1e15, 4e12) == 1e15
    assert roofline.roofline_time(250e9, 1e9, 1e15, 4e12) == 1e9 / 4e12
