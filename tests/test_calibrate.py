"""Calibration: planted parameters come back, and the fit says what it was made from."""

from dataclasses import replace

import numpy as np
import pytest

from perfmodel.device_files import load_device, write_device
from perfmodel.gpu.parameters import PARAMETERS, start_values, values_of
from perfmodel.measurements.calibrate import (
    COVERAGE,
    FOLDS,
    OF_EQUALS,
    OF_MEMBERS,
    OF_COLD,
    OF_WAITING,
    ROBUST_SCALE,
    calibrate,
    fit,
    fold_of,
    intervals,
    standard_errors,
)
from perfmodel.measurements.rows import rows_of, selected, with_resources
from perfmodel.measurements.table import kernel_rows, read_measurements
from perfmodel.resources import data_path

H200 = load_device("h200")

#: Where the planted times come from: each parameter 7.5 to 15 % off a fit's start, up and down in
#: turn, whatever the shipped fit is.
TRUTH = start_values() | {
    name: start_values()[name] * (1 + (-1) ** i * (0.075 + 0.0075 * (7 * i % 11)))
    for i, name in enumerate(OF_EQUALS)
}


@pytest.fixture(scope="module")
def shipped():
    table = read_measurements(data_path("measurements", "h200", "gemm_concurrent.csv.gz"))
    return selected(with_resources(kernel_rows(table), H200), H200)[0]


def planted(table, every_gemm, every_row):
    """Some of the measured rows, with the times that the model gives them at `TRUTH`."""
    labels = table["m"].astype(str) + "x" + table["n"].astype(str) + "x" + table["k"].astype(str)
    kept = np.sort(labels.unique())[::every_gemm]
    rows = rows_of(table[labels.isin(kept)].iloc[::every_row], H200, "fp16")
    return replace(rows, seconds=rows.predicted(H200, TRUTH))


def test_planted_parameters_are_recovered(shipped):
    rows = planted(shipped, 5, 8)
    assert (len(set(rows.labels)), len(rows.seconds)) == (39, 1414)
    start = start_values()
    values, jacobian, residuals = fit([rows], H200, start, OF_EQUALS)
    assert np.abs(residuals).max() < 1e-3
    for name in OF_EQUALS:
        assert abs(start[name] / TRUTH[name] - 1) > 0.06
        assert values[name] == pytest.approx(TRUTH[name], rel=0.02), name
    assert jacobian.shape == (1414, len(OF_EQUALS))
    # What was not free stays where it was.
    others = OF_MEMBERS + OF_WAITING + OF_COLD
    assert {name: values[name] for name in others} == {name: start[name] for name in others}


def test_planted_parameters_are_recovered_from_other_rows(shipped):
    _, _, residuals = fit([planted(shipped, 5, 17)], H200, start_values(), OF_EQUALS)
    assert np.abs(residuals).max() < 1e-3


@pytest.fixture(scope="module")
def calibrated(shipped):
    rows = planted(shipped, 8, 11)
    return rows, calibrate([rows], H200, ["some.csv"])


def test_calibrate_recovers_and_says_how_well(calibrated):
    _, device = calibrated
    assert set(device.fitted) == set(PARAMETERS)
    for name in OF_EQUALS:
        fitted = device.fitted[name]
        assert fitted.value == pytest.approx(TRUTH[name], rel=0.02), name
        assert np.isfinite(fitted.standard_error)
        assert 0 < fitted.standard_error < 0.02 * fitted.value
        assert fitted.unit == PARAMETERS[name].unit
    # Warm rows of equal GEMMs say nothing of the others, which keep their start.
    assert set(device.fit["not_determined"]) == {*OF_MEMBERS, *OF_WAITING, *OF_COLD}
    for name in OF_MEMBERS + OF_WAITING + OF_COLD:
        assert device.fitted[name].value == PARAMETERS[name].start
        assert device.fitted[name].standard_error == 0
    assert device.fit["unseen_mape_pct"] == pytest.approx(0, abs=0.05)


def test_provenance(calibrated):
    rows, device = calibrated
    found = device.fit
    assert found["files"] == ["some.csv"]
    assert found["rows"] == len(rows.seconds) == 660
    assert found["dtypes"] == ["fp16"]
    assert found["gemms"] == sorted(set(rows.labels))
    assert len(found["gemms"]) == 25
    assert found["ranges"]["m"] == [rows.gemms.m.min(), rows.gemms.m.max()]
    assert found["ranges"]["stages"] == [3, 4]
    assert found["ranges"]["concurrency_degree"] == [1, 16]
    assert sorted(found["folds"]) == [str(fold) for fold in range(FOLDS)]
    assert all(set(values) == set(PARAMETERS) for values in found["folds"].values())
    assert found["interval"]["degrees"] == [1, 2, 4, 8, 16]


def test_the_written_file_reads_back(calibrated, tmp_path):
    _, device = calibrated
    path = tmp_path / "new.toml"
    write_device(path, device)
    assert load_device(path) == device
    assert values_of(load_device(path)) == values_of(device)
    assert list(tmp_path.iterdir()) == [path]


def test_the_device_itself_is_left_as_it_was(calibrated):
    _, device = calibrated
    assert device.sources == H200.sources
    assert H200 == load_device("h200")


@pytest.mark.parametrize(("every_gemm", "every_row"), [(1, 200), (20, 1)])
def test_too_few_rows_or_gemms(shipped, every_gemm, every_row):
    rows = planted(shipped, every_gemm, every_row)
    with pytest.raises(ValueError) as refused:
        calibrate([rows], H200, ["a.csv", "b.csv"])
    assert str(refused.value) == (
        f"a.csv, b.csv: {len(rows.seconds)} rows of {len(set(rows.labels))} GEMMs with a warm L2"
        " that the model can predict: a fit needs at least 500 rows of 20 GEMMs")


def test_no_rows_at_all():
    with pytest.raises(ValueError, match="^a.csv: 0 rows of 0 GEMMs"):
        calibrate([], H200, ["a.csv"])


@pytest.mark.parametrize(
    ("label", "fold"),
    # zlib.crc32 of the text, modulo 5: the same on any machine, in any process, for ever.
    [("512x1024x2048", 2), ("64x64x64", 2), ("128x416x256", 0), ("64x1024x2048x8", 3)],
)
def test_folds_are_stable(label, fold):
    assert fold_of(label) == fold


def test_folds_are_of_about_equal_size():
    counts = np.bincount([fold_of(label) for label in H200.fit["gemms"]], minlength=FOLDS)
    assert counts.sum() == 195
    assert counts.min() > 25


def test_standard_error_by_hand():
    # One parameter, three rows of two GEMMs; z = r^2 / c^2 with c = 0.08: r = 0.08 gives z = 1.
    # Slope of a row: J r (1 + z)^(1/4) = J r 2^(1/4).
    # GEMM a: (1 + 2) 0.08 x 2^(1/4); GEMM b: -3 x 0.08 x 2^(1/4): squares sum to
    # (9 + 9) 0.0064 sqrt(2). J^T J = 1 + 4 + 9 = 14. Variance = that / 14^2, times the value.
    assert ROBUST_SCALE == 0.08
    jacobian = np.array([[1.0], [2.0], [3.0]])
    residuals = np.array([0.08, 0.08, -0.08])
    found = standard_errors({"x": 5.0}, ["x"], jacobian, residuals, np.array(["a", "a", "b"]))
    assert found == {"x": pytest.approx(5 * np.sqrt(18 * 0.0064 * np.sqrt(2)) / 14)}


def test_rows_of_one_gemm_that_err_together_count_once():
    # 100 rows that say the same are no surer than one, if they are of one GEMM.
    jacobian, residuals = np.ones((100, 1)), np.full(100, 0.01)
    inputs = {"x": 1.0}, ["x"], jacobian, residuals
    one = standard_errors(*inputs, np.array(["a"] * 100))["x"]
    many = standard_errors(*inputs, np.array([str(i) for i in range(100)]))["x"]
    assert one == pytest.approx(10 * many)


def test_intervals_cover_what_they_say():
    random = np.random.default_rng(0)
    degrees = np.repeat([1, 4, 16], 4000)
    spread = np.repeat([0.02, 0.05, 0.2], 4000)
    log_ratio = spread * random.standard_normal(12_000) + 0.01
    found = intervals(degrees, log_ratio)
    assert found["degrees"] == [1, 4, 16]
    for degree, low, high, sigma in zip(
            found["degrees"], found["low"], found["high"], (0.02, 0.05, 0.2)):
        ratio = np.exp(log_ratio[degrees == degree])
        assert ((ratio >= low) & (ratio <= high)).mean() == pytest.approx(COVERAGE, abs=0.005)
        # 5 % of a normal distribution lie below -1.645 sigma, and above as much.
        assert np.log(low) == pytest.approx(0.01 - 1.645 * sigma, abs=0.06 * sigma)
        assert np.log(high) == pytest.approx(0.01 + 1.645 * sigma, abs=0.06 * sigma)


def test_start_values_are_inside_their_bounds():
    for parameter in PARAMETERS.values():
        assert 0 < parameter.lower < parameter.start < parameter.upper
        assert parameter.meaning
    assert start_values().keys() == PARAMETERS.keys()


def test_what_the_rows_do_not_determine_is_named(shipped, tmp_path):
    # Isolated times alone say nothing of branches.
    rows = rows_of(shipped.query("concurrency_degree == 1").iloc[::11], H200, "fp16")
    device = calibrate([rows], H200, ["isolated"])
    left = device.fit["not_determined"]
    assert {"branch_start_s", "stagger_share", "member_start_s"} <= set(left)
    assert "launch_gap_s" not in left
    write_device(tmp_path / "isolated.toml", device)
