"""Validation: the bars on unseen rows, what is skipped, and figures of merit by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfmodel.cli import main
from perfmodel.device_files import load_device
from perfmodel.devices import Fitted, with_fit
from perfmodel.gpu.kernels import kernel_space
from perfmodel.gpu.parameters import borrowed
from perfmodel.gpu.space import evaluate
from perfmodel.measurements.calibrate import fold_of
from perfmodel.measurements.rows import rows_of, selected, with_resources
from perfmodel.measurements.table import kernel_rows, read_measurements
from perfmodel.measurements.validate import (
    errors,
    library_errors,
    predictions,
    regret,
    unseen_values,
    validate,
    with_isolated,
)
from perfmodel.problems import gemms, parse_gemm
from perfmodel.resources import data_path

H200 = load_device("h200")
DEGREES = ("1", "2", "4", "8", "16")

#: interface.md, "validate --json", and beside them: device, library_rows, estimated_resources.
KEYS = {
    "rows", "skipped", "mape_pct", "median_ape_pct", "bias_pct", "p90_ape_pct", "spearman",
    "by_degree", "regret", "regret_isolated_best", "interval_coverage", "library_mape_pct",
}
BESIDE = {"device", "library_rows", "estimated_resources"}
FIGURES = {"rows", "mape_pct", "median_ape_pct", "bias_pct", "p90_ape_pct", "spearman"}

HEADER = (
    "device,library,dtype,m,n,k,macro_tile_m,macro_tile_n,depth_u,stages,warps,split_k,"
    "concurrency_degree,rounds,time_us"
)
ROW = "h200,triton,fp16,512,1024,2048,128,64,64,3,4,1,8,3,41.5"
LIBRARY_ROW = "h200,cublas,fp16,512,1024,2048,,,,,,,8,3,41.5"


@pytest.fixture(scope="module")
def shipped():
    return read_measurements(data_path("measurements", "h200", "gemm_concurrent.csv.gz"))


@pytest.fixture(scope="module")
def report(shipped):
    return validate(shipped, H200)


def measured(folder, *lines, header=HEADER):
    """Table of rows such as ROW, each with a time of its own."""
    lines = [line.replace("41.5", f"{41.5 + i}") for i, line in enumerate(lines)]
    path = folder / "t.csv"
    path.write_text("\n".join([header, *lines, ""]))
    return read_measurements(path)


def test_the_bar_of_the_error(report):
    assert report["mape_pct"] <= 6.5
    assert {d for d in DEGREES if report["by_degree"][d]["mape_pct"] > 7.5} == set()


@pytest.mark.parametrize("degree", DEGREES)
def test_the_bar_of_the_regret(report, degree):
    assert 1 <= report["regret"][degree] <= 1.055


def test_the_stated_interval_covers_what_it_says(report):
    assert 0.85 <= report["interval_coverage"] <= 0.95


def test_the_pick_at_a_degree_is_better_than_the_isolated_best(report):
    assert report["regret_isolated_best"]["1"] == 1
    assert all(report["regret"][d] < report["regret_isolated_best"][d] for d in DEGREES[1:])


def test_the_keys_of_the_report(report):
    assert set(report) == KEYS | BESIDE
    assert tuple(report["by_degree"]) == DEGREES
    assert all(set(figures) == FIGURES for figures in report["by_degree"].values())
    assert tuple(report["regret"]) == tuple(report["regret_isolated_best"]) == DEGREES


def test_the_counts_of_the_report(report):
    assert (report["rows"], report["library_rows"], report["skipped"]) == (56_550, 975, {})
    assert sum(figures["rows"] for figures in report["by_degree"].values()) == 56_550
    assert report["estimated_resources"] == 0


def test_the_errors_of_all_are_those_of_the_degrees_together(report):
    mean = np.mean([report["by_degree"][d]["mape_pct"] for d in DEGREES])
    # Each degree has as many rows.
    assert report["mape_pct"] == pytest.approx(mean, rel=1e-9)
    assert report["mape_pct"] == pytest.approx(H200.fit["unseen_mape_pct"], abs=0.02)


def test_unknown_rows_are_skipped_and_counted(tmp_path):
    table = measured(
        tmp_path, ROW,
        ROW.replace("h200", "h300"),
        ROW.replace("h200", "h300").replace(",8,3,", ",4,3,"),
        ROW.replace("h200", "v100"),
        ROW.replace("fp16", "fp32"),
        # 5 x (256 + 256) x 64 x 2 B = 320 KiB
        ROW.replace("128,64,64,3,4,1", "256,256,64,5,8,1"),
        # 256 x 256 / 128 threads: 512 accumulators each
        ROW.replace("128,64,64,3,4,1", "256,256,32,2,4,1"),
        ROW.replace("128,64,64,3,4,1", "128,64,64,1,4,1"),
        LIBRARY_ROW.replace("h200", "h100-sxm"),
        LIBRARY_ROW.replace("fp16", "fp32"),
    )
    report = validate(table, H200)
    assert report["rows"] == 1
    assert report["skipped"] == {
        "unknown device": 2,
        "other device": 1,
        "dtype the device lacks": 1,
        "too much LDS": 1,
        "too many registers": 1,
        "fewer than 2 stages: the model has no loop without prefetch": 1,
        "library row of another device": 1,
        "library row of a dtype the device lacks": 1,
    }


def test_spilled_rows_are_skipped_and_counted_cold_ones_are_not(tmp_path):
    header = HEADER + ",register_spills,cache"
    table = measured(
        tmp_path, ROW + ",0,warm", ROW.replace(",8,3,", ",4,3,") + ",16,warm",
        ROW.replace(",8,3,", ",2,3,") + ",0,cold", header=header)
    report = validate(table, H200)
    assert (report["rows"], report["skipped"]) == (2, {"registers spilled": 1})


def test_spills_of_the_kernel_table_count(tmp_path):
    kernels = tmp_path / "k.csv"
    kernels.write_text(
        "macro_tile_m,macro_tile_n,depth_u,stages,warps,split_k,registers_per_thread,"
        "register_spills,lds_bytes\n128,64,64,3,4,1,255,12,73728\n")
    table = measured(tmp_path, ROW, ROW.replace("128,64,64,3", "128,64,64,4"))
    report = validate(table, H200, [kernels])
    assert (report["rows"], report["skipped"]) == (1, {"registers spilled": 1})
    # Neither is in this table: the other's resources are estimated.
    assert report["estimated_resources"] == 1


def test_rows_of_a_kernel_that_no_table_knows_are_predicted_and_counted(tmp_path):
    table = measured(
        tmp_path, ROW, ROW.replace("128,64,64,3", "128,64,64,2"),
        ROW.replace("128,64,64,3", "128,64,64,5"))
    report = validate(table, H200)
    assert (report["rows"], report["estimated_resources"]) == (3, 2)
    assert report["skipped"] == {}


def test_nothing_to_predict_is_refused(tmp_path):
    table = measured(tmp_path, ROW.replace("h200", "h300"), ROW.replace("fp16", "fp32"))
    with pytest.raises(ValueError) as refused:
        validate(table, H200)
    assert str(refused.value) == (
        "not one row can be predicted for h200"
        " (skipped: 1 unknown device, 1 dtype the device lacks)")


def test_a_table_of_a_library_only(tmp_path):
    line = "h200,cublas,fp16,512,1024,2048,,,,,,,{},3,{}"
    table = measured(tmp_path, line.format(1, 10.0), line.format(4, 50.0))
    report = validate(table, H200)
    assert set(report) == {"device", "rows", "skipped", "library_rows", "library_mape_pct"}
    assert (report["rows"], report["library_rows"], report["skipped"]) == (0, 2, {})
    # The best of the space at each degree, with the parameters that have not seen this GEMM.
    gemm = parse_gemm("512x1024x2048")
    values = H200.fit["folds"][str(fold_of("512x1024x2048"))]
    values = values if "512x1024x2048" in H200.fit["gemms"] else None
    best = evaluate(H200, gemm, kernel_space(H200), [1, 4], 3, values).seconds.min(axis=1)[0] * 1e6
    expected = (abs(best[0] / 10 - 1) + abs(best[1] / 50 - 1)) / 2 * 100
    assert report["library_mape_pct"] == pytest.approx(expected, rel=1e-9)
    found = library_errors(table.drop(columns=["macro_tile_m"]), H200)["predicted_us"]
    assert found.to_numpy() == pytest.approx(best, rel=1e-12)


def contest(*rows):
    names = ["m", "macro_tile_m", "concurrency_degree", "time_us", "predicted_us"]
    fixed = dict(
        dtype="fp16", n=1, k=1, batch=1, cache="warm", macro_tile_n=1, depth_u=1, stages=3, warps=4,
        split_k=1)
    return pd.DataFrame(rows, columns=names).assign(**fixed)


def test_regret_by_hand():
    # GEMM 1: the model picks the kernel of 12 us, the best is 10: 1.2. GEMM 2: the best, 1.
    # sqrt(1.2 x 1) = 1.0954
    table = contest((1, 64, 4, 10.0, 9.0), (1, 128, 4, 12.0, 8.0),
                    (2, 64, 4, 30.0, 5.0), (2, 128, 4, 40.0, 6.0))
    assert regret(table, "predicted_us") == {"4": pytest.approx(np.sqrt(1.2))}


def test_regret_is_by_degree_and_leaves_out_what_is_not_known():
    table = contest((1, 64, 1, 5.0, 9.0), (1, 128, 1, 4.0, 10.0),
                    (1, 64, 8, 30.0, 6.0), (1, 128, 8, 60.0, np.nan))
    # Degree 1: picks 5, best 4. Degree 8: only one of the kernels is predicted.
    assert regret(table, "predicted_us") == {"1": pytest.approx(1.25), "8": 1.0}


def test_regret_of_the_isolated_best_by_hand():
    # Alone the 64-row kernel is the best; together it takes 30 against 20.
    table = with_isolated(contest((1, 64, 1, 4.0, 1.0), (1, 128, 1, 5.0, 1.0),
                                  (1, 64, 8, 30.0, 1.0), (1, 128, 8, 20.0, 1.0)))
    assert table["isolated_us"].tolist() == [4, 5, 4, 5]
    assert regret(table, "isolated_us") == {"1": 1.0, "8": pytest.approx(1.5)}


def test_errors_by_hand():
    # Errors of -10, +20, +30 and 0 %.
    table = pd.DataFrame({"time_us": [10.0, 10, 20, 40], "predicted_us": [9.0, 12, 26, 40]})
    found = errors(table)
    assert found["rows"] == 4
    assert found["mape_pct"] == pytest.approx(15)
    assert found["median_ape_pct"] == pytest.approx(15)
    assert found["bias_pct"] == pytest.approx(10)
    # 0, 10, 20, 30: at 0.9 x 3 = 2.7, so 20 + 0.7 x 10
    assert found["p90_ape_pct"] == pytest.approx(27)
    # Ranks of the times are 1.5, 1.5, 3, 4 and of the predictions 1 to 4.
    assert found["spearman"] == pytest.approx(0.9486833)


def test_one_row_has_no_rank_correlation():
    assert np.isnan(errors(pd.DataFrame({"time_us": [1.0], "predicted_us": [2.0]}))["spearman"])


def test_equal_times_have_no_rank_correlation():
    table = pd.DataFrame({"time_us": [5.0, 5.0], "predicted_us": [1.0, 2.0]})
    assert np.isnan(errors(table)["spearman"])


def device_with_folds(seen):
    """The H200 with a launch gap that tells which fold it is of."""
    own = {name: found.value for name, found in H200.fitted.items()}
    folds = {str(i): own | {"launch_gap_s": (i + 2) * 1e-6} for i in range(5)}
    fitted = H200.fitted | {"launch_gap_s": Fitted(1e-6, 1e-8, "s")}
    return with_fit(H200, fitted, {"gemms": seen, "folds": folds})


def test_seen_gemms_get_the_parameters_of_the_fold_that_left_them_out():
    labels = np.array(["512x1024x2048", "64x64x64", "128x416x256", "512x1024x2048"])
    # 64x64x64 has not been seen: the device's own.
    device = device_with_folds(["512x1024x2048", "128x416x256"])
    found = np.empty(4)
    for at, values, _ in unseen_values(device, labels):
        found[at] = 1e-6 if values is None else values["launch_gap_s"]
    gaps = [(fold_of(label) + 2) * 1e-6 for label in labels]
    assert found.tolist() == [gaps[0], 1e-6, gaps[2], gaps[3]]


def test_a_fit_without_folds_is_used_as_it_is():
    labels = np.array(["512x1024x2048"])
    for fit in ({}, {"gemms": ["512x1024x2048"]}):
        (only,) = unseen_values(with_fit(H200, H200.fitted, fit), labels)
        assert only[0].tolist() == [True]
        assert only[1] is None


def test_predictions_use_them(tmp_path):
    table = measured(tmp_path, ROW, ROW.replace("512,1024,2048", "64,64,64"))
    table, _ = selected(with_resources(kernel_rows(table), H200), H200)
    device = device_with_folds(["512x1024x2048"])
    found = predictions(table, device)["predicted_us"].to_numpy()
    rows = rows_of(table, device, "fp16")
    fold = device.fit["folds"][str(fold_of("512x1024x2048"))]
    assert found[0] == pytest.approx(rows.predicted(device, fold)[0] * 1e6, rel=1e-12)
    assert found[1] == pytest.approx(rows.predicted(device)[1] * 1e6, rel=1e-12)
    assert found[0] != rows.predicted(device)[0] * 1e6


def test_rows_in_any_order_and_of_several_dtypes(tmp_path):
    lines = [ROW, ROW.replace("fp16", "bf16"), ROW.replace("512,", "640,"),
             ROW.replace("fp16", "fp8").replace("128,64,64", "128,64,128")]
    table = measured(tmp_path, *lines)
    straight, backwards = validate(table, H200), validate(table[::-1], H200)
    assert straight["rows"] == backwards["rows"] == 4
    assert straight["mape_pct"] == pytest.approx(backwards["mape_pct"], rel=1e-12)
    assert straight["regret"] == backwards["regret"]


def test_batched_rows_are_another_gemm(tmp_path):
    header = HEADER + ",batch"
    table = measured(tmp_path, ROW + ",1", ROW + ",4", header=header)
    rows, _ = selected(with_resources(kernel_rows(table), H200), H200)
    assert rows_of(rows, H200, "fp16").labels.tolist() == ["512x1024x2048", "512x1024x2048x4"]
    assert validate(table, H200)["regret"] == {"8": 1.0}


def test_borrowed_parameters_state_no_coverage(tmp_path):
    device = borrowed(load_device("h100-sxm"), H200)
    report = validate(measured(tmp_path, ROW.replace("h200", "h100-sxm")), device)
    assert report["interval_coverage"] is None
    assert report["rows"] == 1


def test_a_perfect_table_has_no_error(tmp_path):
    # Times of the model itself, of a GEMM that no fit has seen.
    table, _ = selected(with_resources(kernel_rows(measured(
        tmp_path, ROW.replace("512,1024,2048", "72,80,96"),
        ROW.replace("512,1024,2048", "720,800,960"))), H200), H200)
    table = table.assign(time_us=rows_of(table, H200, "fp16").predicted(H200) * 1e6)
    report = validate(table, H200)
    assert report["mape_pct"] == pytest.approx(0, abs=1e-10)
    assert report["spearman"] == pytest.approx(1)
    assert report["interval_coverage"] == 1
    assert gemms(72, 80, 96).labels[0] not in H200.fit["gemms"]


def test_the_readme_shows_what_the_command_prints(capsys):
    readme = Path(__file__).parent.parent / "README.md"
    assert main(["validate"]) == 0
    printed = capsys.readouterr().out
    assert printed in readme.read_text(encoding="utf-8")
