"""Baselines: hand-worked cases of the rules of AMD's libraries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from perfmodel.equations.baselines import (
    granularity,
    granularity_time,
    rate_per_used_unit,
    tensile_granularity,
)


@pytest.mark.parametrize(("parts", "expected"), [
    (1, 1.0),
    (0.25, 0.25),       # a quarter of one
    (2.5, 2.5 / 3),     # three begun
    (4, 1.0),
])
def test_granularity(parts, expected):
    assert granularity(parts) == pytest.approx(expected)


@pytest.mark.parametrize(("case", "expected"), [
    # 512 x 1024 in 128 x 128: 4 x 8 whole tiles, 32 workgroups on 132 units.
    (dict(), 32 / 132),
    # Eight at once: 256 workgroups, 1.94 a unit, two rounds begun.
    (dict(batch=8), 256 / 132 / 2),
    # Split in 4: 128 workgroups.
    (dict(split_k=4), 128 / 132),
    # 500 rows are 3.90625 tiles of 4.
    (dict(m=500), 3.90625 / 4 * 32 / 132),
    # 96 columns are 0.75 of one tile; 4 workgroups.
    (dict(n=96), 0.75 * 4 / 132),
    # 2 wavefronts on 4 SIMDs; below one tile a unit, floor(t + 1) = 1.
    (dict(warps=2), 32 / 132 * 0.5),
    # At 1.94 tiles a unit two workgroups are counted: 4 wavefronts.
    (dict(warps=2, batch=8), 256 / 132 / 2),
])
def test_tensile_granularity(case, expected):
    of = dict(m=512, n=1024, batch=1, macro_tile_m=128, macro_tile_n=128, split_k=1, warps=4,
              compute_units=132, simds_per_compute_unit=4) | case
    assert tensile_granularity(**of) == pytest.approx(expected)


SIZES = some.integers(1, 10_000)


@given(SIZES, SIZES, some.integers(1, 64), some.integers(1, 4), some.integers(1, 200))
def test_granularity_is_a_share(m, n, batch, split_k, units):
    share = tensile_granularity(m, n, batch, 128, 64, split_k, 4, units, 4)
    assert 0 < share <= 1


def test_granularity_broadcasts():
    shares = tensile_granularity(
        np.array([[192], [256]]), 256, 1, np.array([64, 128, 256]), 128, 1, 4, 8, 4)
    assert shares.shape == (2, 3)
    # 192 rows: whole in 64 (6 workgroups of 8), 1.5 of 2 in 128 (4), 0.75 of 1 in 256 (2).
    assert shares[0] == pytest.approx([6 / 8, 0.75 * 4 / 8, 0.75 * 2 / 8])


def test_time_at_a_granularity():
    # 2 TFLOP at 1 PFLOP/s would take 2 ms; at a quarter, 8 ms.
    assert granularity_time(2e12, 1e15, 0.25) == pytest.approx(8e-3)


def test_rate_per_used_unit():
    # 1 GFLOP in 10 us is 1e14 FLOP/s; 66 workgroups use 66 units, 264 all of 132.
    assert rate_per_used_unit(1e9, 1e-5, 66, 132) == pytest.approx(1e14 / 66)
    assert rate_per_used_unit(1e9, 1e-5, 264, 132) == pytest.approx(1e14 / 132)


def test_fewer_units_can_win_though_slower():
    # A large tile: twice the time on a quarter of the units.
    small, large = rate_per_used_unit(1e9, np.array([1e-5, 2e-5]), np.array([128, 32]), 132)
    assert large == pytest.approx(2 * small)
