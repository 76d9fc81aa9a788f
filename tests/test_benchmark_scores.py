"""Scores and folds of benchmarks/: hand-worked. Its peers are not run here."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SCORES = Path(__file__).parents[1] / "benchmarks" / "contest.py"

if not SCORES.exists():
    pytest.skip("no benchmarks/ beside the tests", allow_module_level=True)

_spec = importlib.util.spec_from_file_location("contest", SCORES)
contest = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(contest)


def rows(times, degree=1):
    sizes = {"dtype": "fp16", "m": 64, "n": 64, "k": 64, "batch": 1, "cache": "warm"}
    return pd.DataFrame(sizes | {"concurrency_degree": degree, "time_us": times})


def test_regret_of_a_pick():
    # The second is picked: 3 over 2.
    assert contest.regret(rows([2.0, 3.0, 8.0]), [5, 1, 9]) == pytest.approx({1: 1.5})


def test_of_ties_the_geometric_mean_counts():
    # 2 or 8 are picked: their mean is 4, over 2.
    assert contest.regret(rows([2.0, 3.0, 8.0]), [1, 5, 1]) == pytest.approx({1: 2.0})


def test_regret_by_degree_is_a_geometric_mean_over_gemms():
    other = rows([1.0, 4.0]).assign(m=128)
    table = pd.concat([rows([1.0, 2.0]), other, rows([1.0, 2.0], 4)], ignore_index=True)
    # The slower one is picked twice at degree 1 (2 and 4), the faster at 4.
    found = contest.regret(table, np.array([2, 1, 2, 1, 1, 2]))
    assert found == pytest.approx({1: 8**0.5, 4: 1.0})


def test_a_contest_across_degrees_is_one_number():
    table = pd.concat([rows([2.0]), rows([1.0], 4)], ignore_index=True)
    assert contest.regret(table, [1, 2], ("m", "n", "k")) == pytest.approx(2.0)


def test_what_is_all_the_same_picks_nothing():
    assert np.isnan(contest.regret(rows([2.0, 3.0]), [1, 1])[1])


def test_what_is_not_rated_is_not_picked():
    assert contest.regret(rows([2.0, 3.0]), [np.nan, 7]) == pytest.approx({1: 1.5})


def test_scaled_by_the_other_rows():
    predicted, measured = np.array([1.0, 1.0, 2.0]), np.array([3.0, 5.0, 2.0])
    first = np.array([True, False, False])
    # The factor of the first comes of ratios 5 and 1, that of the others is 3.
    found = contest.scaled(predicted, measured, [(~first, first), (first, ~first)])
    assert found.tolist() == [3.0, 3.0, 6.0]


def test_scaled_kernel_by_kernel():
    predicted, measured = np.ones(6), np.array([2.0, 4.0, 6.0, 30.0, 9.0, 9.0])
    kernel = np.array([0, 0, 0, 1, 0, 1])
    seen = np.arange(6) < 4
    # Kernel 0 is seen thrice, median 4; kernel 1 once.
    found = contest.scaled_by_kernel(predicted, measured, kernel, [(seen, ~seen)])
    assert found[4:].tolist() == [4.0, 30.0]


def test_kernels_have_one_number_in_all_tables():
    tiles = dict(macro_tile_n=64, depth_u=64, stages=3, warps=4, split_k=1)
    first, second = (pd.DataFrame(tiles | {"macro_tile_m": m}) for m in ([64, 128], [128, 64, 64]))
    numbers = contest.kernel_numbers(first, second)
    assert [n.tolist() for n in numbers] == [[0, 1], [1, 0, 0]]


def test_launches_on_each_branch():
    table = rows([1.0, 1.0], [2, 8])
    assert contest.launches(table).tolist() == [1, 1]
    assert contest.launches(table.assign(waiting=16)).tolist() == [8, 2]


def test_cells_leave_gemm_and_tile_out_and_cover_every_row_once():
    grid = np.array(np.meshgrid(range(5), range(5))).reshape(2, -1)
    table = pd.DataFrame({"gemm_fold": grid[0], "kernel_fold": grid[1]})
    count = np.zeros(len(table))
    for seen, unseen in contest.cells(table):
        count += unseen
        for fold in ("gemm_fold", "kernel_fold"):
            assert not set(table.loc[seen, fold]) & set(table.loc[unseen, fold])
    assert (count == 1).all()


def test_kernels_of_a_tile_share_a_fold():
    tiles = [(64, 32), (64, 32), (64, 64), (128, 32), (256, 128), (64, 64)]
    table = pd.DataFrame(tiles, columns=["macro_tile_m", "macro_tile_n"])
    # In order of their sides: 64x32, 64x64, 128x32, 256x128.
    assert contest.kernel_folds(table).tolist() == [0, 0, 1, 2, 3, 1]
