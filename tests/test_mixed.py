"""Different GEMMs together: the equation, the carve-out rule, tables of members."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from perfmodel.cli import main
from perfmodel.device_files import load_device
from perfmodel.equations.contention import mixed_seconds
from perfmodel.equations.occupancy import default_carveout
from perfmodel.gpu.kernels import kernels_from
from perfmodel.gpu.machine import machine_of
from perfmodel.gpu.mixed import member_of, mixed_time
from perfmodel.gpu.timing import isolated_time
from perfmodel.measurements.rows import member_rows_of, members_selected
from perfmodel.measurements.table import read_members
from perfmodel.measurements.validate_members import merged, validate_members
from perfmodel.problems import gemms
from perfmodel.resources import data_path

H200 = load_device("h200")
MACHINE = machine_of(H200, "fp16")
KIB = 1024


def member(m, n, k, tile=(128, 128, 64, 3, 8, 1)):
    names = ("macro_tile_m", "macro_tile_n", "depth_u", "stages", "warps", "split_k")
    kernels = kernels_from({name: [size] for name, size in zip(names, tile)})
    return member_of(H200, gemms(m, n, k), kernels)


def alone(one):
    return isolated_time(MACHINE, one.gemms, one.kernels, one.occupancy)


@pytest.mark.parametrize(
    ("busy", "carveouts", "times", "shared", "seconds"),
    [
        # side by side: the longer, + gap 1 + one further branch 0.5
        ([2, 3], [1, 1], [5, 9], False, 9 + 1.5),
        # 2 + 3 of flow; beyond it 3 and 6 of which the worse shows
        ([2, 3], [1, 1], [5, 9], True, 5 + 6 + 1.5),
        # carve-outs apart: both show, so one after the other
        ([2, 3], [1, 2], [5, 9], True, 5 + 9 + 1.5),
        # three, two carve-outs: flow 6, worst of the first 4 (5 - 1), of the second 3
        ([1, 2, 3], [1, 1, 2], [5, 5, 6], True, 6 + 4 + 3 + 2),
        # a member cannot be busy longer than it takes alone
        ([9, 1], [1, 1], [5, 1], True, 5 + 1 + 1.5),
    ],
)
def test_worked_by_hand(busy, carveouts, times, shared, seconds):
    found = mixed_seconds(np.array(busy, float), np.array(carveouts), np.array(times, float),
                          shared, 1.0, 0.5, 0.0)
    assert float(found) == pytest.approx(seconds)


def test_hbm_beside_it():
    # together 12, HBM 12: 12 x 2^(1/2.5)
    found = mixed_seconds(np.array([6.0, 6.0]), np.array([1, 1]), np.array([6.0, 6.0]), True,
                          0.0, 0.0, 12.0)
    assert float(found) == pytest.approx(12 * 2**0.4)


@pytest.mark.parametrize(
    ("lds_kib", "workgroups", "most_kib", "carveout_kib"),
    [
        (48, 4, 228, 196),  # 4 x 49 = 196
        (40, 5, 228, 228),  # 5 x 41 = 205
        (24, 9, 228, 228),  # 9 x 25 = 225
        (10, 2, 228, 32),  # 2 x 11 = 22
        (64, 3, 228, 228),  # above 48 KiB: the largest
        (40, 2, 96, 96),  # 2 x 41 = 82, V100's most
    ],
)
def test_default_carveout(lds_kib, workgroups, most_kib, carveout_kib):
    found = default_carveout(lds_kib * KIB, workgroups, most_kib * KIB, KIB)
    assert float(found) == carveout_kib * KIB


def test_carveouts_that_clash_are_those_that_were_seen_to():
    """By default slower than with one carve-out exactly where ours differ and units are shared."""
    table = pd.read_csv(data_path("measurements", "h200", "micro", "carveout.csv"))
    known = pd.read_csv(data_path("measurements", "h200", "kernels.csv"))
    names = ["macro_tile_m", "macro_tile_n", "depth_u", "stages", "warps", "split_k"]
    short = ["bm", "bn", "bk", "st", "w", "sk"]
    carveouts = []
    for i in (1, 2):
        side = table[[f"{name}{i}" for name in short]].set_axis(names, axis=1)
        kernels = side.merge(known, on=names, how="left")
        carveouts.append(default_carveout(
            kernels["lds_bytes"], kernels["workgroups_per_cu"], 228 * KIB, KIB))
    differ = (carveouts[0] != carveouts[1])[table["carveout_pct"] == -1]
    pair = (table["pair_12_us"] + table["pair_21_us"]) / 2
    default, same = (pair[table["carveout_pct"] == pct].to_numpy() for pct in (-1, 100))
    slower = default / same > 1.1
    assert not slower[~differ].any()
    assert slower[differ].mean() > 0.6


def test_order_of_the_members_does_not_matter():
    one, other = member(512, 1024, 2048), member(128, 4096, 256, (64, 64, 64, 4, 4, 1))
    assert mixed_time(MACHINE, [one, other]) == mixed_time(MACHINE, [other, one])


@pytest.mark.parametrize("sizes", [(64, 64, 64), (512, 1024, 2048), (4096, 4096, 512)])
def test_no_faster_than_the_longest_and_one_carveout_no_slower(sizes):
    wide, narrow = member(*sizes), member(*sizes, (64, 64, 64, 3, 4, 1))
    clashing = mixed_time(MACHINE, [wide, narrow])
    assert wide.carveout != narrow.carveout
    assert clashing >= max(alone(wide), alone(narrow))
    assert mixed_time(MACHINE, [wide, narrow], one_carveout=True) <= clashing


@pytest.mark.parametrize(
    ("name", "members", "most_pct"),
    [("gemm_pairs", 2, 11.0), ("mixed_pairs", 2, 10.0), ("mixed_quadruples", 4, 10.0)],
)
def test_shipped_tables(name, members, most_pct):
    table, found = read_members(data_path("measurements", "h200", f"{name}.csv.gz"))
    report = validate_members(table, found, H200)
    assert found == members
    assert report["rows"] == len(table)
    assert report["pair_mape_pct" if members == 2 else "mixed_mape_pct"] < most_pct


def test_members_that_cannot_be_predicted_are_counted():
    table, members = read_members(data_path("measurements", "h200", "gemm_pairs.csv.gz"))
    table = table.head(4).copy()
    table.loc[table.index[0], "device"] = "h300"
    table.loc[table.index[1], "stages_2"] = 1
    rows, sides, skipped = members_selected(table, members, H200)
    assert len(rows) == 2
    assert skipped == {
        "unknown device": 1,
        "fewer than 2 stages: the model has no loop without prefetch": 1,
    }
    part = member_rows_of(rows, sides, H200, "fp16")
    assert np.isfinite(part.predicted(H200)).all()


def test_both_orders_of_the_branches_are_averaged():
    table, members = read_members(data_path("measurements", "h200", "mixed_pairs.csv.gz"))
    rows, sides, _ = members_selected(table.head(2), members, H200)
    part = member_rows_of(rows, sides, H200, "fp16")
    first = rows.iloc[0]
    both = (first["concurrent_time_us"] + first["concurrent_time_reversed_us"]) / 2
    assert part.seconds[0] == pytest.approx(both * 1e-6)
    assert part.one_carveout.tolist() == [False, True]


def test_merged_reports():
    pairs = [{"members": 2, "rows": rows, "mape_pct": mape} for rows, mape in ((10, 4), (30, 8))]
    whole = merged([{"rows": 5, "mape_pct": 1.0}, *pairs])
    assert whole["rows"] == 5
    assert whole["pair_mape_pct"] == pytest.approx((10 * 4 + 30 * 8) / 40)


def test_command_line(tmp_path, capsys):
    source = data_path("measurements", "h200", "mixed_quadruples.csv.gz")
    few = tmp_path / "few.csv"
    few.write_text("".join(gzip.open(source, "rt").readlines()[:9]))
    assert main(["validate", str(few), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 8
    assert set(report["by_carveout"]) == {"-1", "100"}
    assert main(["validate", str(few)]) == 0
    assert "8 sets of 4 different GEMMs" in capsys.readouterr().out
