"""GEMMs that wait: the protocol's limits, its error on the measured table, the commands."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.cli import main
from perfmodel.device_files import load_device
from perfmodel.gpu.kernels import kernel_space, occupancy_of
from perfmodel.gpu.machine import machine_of
from perfmodel.gpu.parameters import values_of
from perfmodel.gpu.timing import ROUNDS, concurrent_time, isolated_time, waiting_time
from perfmodel.measurements.calibrate import OF_WAITING, calibrate, fit
from perfmodel.measurements.rows import rows_of, selected, with_resources
from perfmodel.measurements.rows_waiting import waiting_rows_of, waiting_selected
from perfmodel.measurements.table import kernel_rows, read_measurements, read_waiting
from perfmodel.measurements.validate_waiting import validate_waiting, waiting_predictions
from perfmodel.problems import gemms
from perfmodel.resources import data_path

H200 = load_device("h200")
SPACE = kernel_space(H200)[::7]
OCCUPANCY, _ = occupancy_of(H200, SPACE)
MACHINE = machine_of(H200, "fp16")
TABLE = data_path("measurements", "h200", "waiting.csv.gz")

SIDE = st.integers(1, 8192)
FEW = settings(max_examples=12, derandomize=True, deadline=None)


def inputs(m, n, k):
    """Shapes (kernel, 1), to go with an axis of degrees or numbers waiting."""
    return MACHINE, gemms(m, n, k), SPACE[:, None], OCCUPANCY[:, None]


@FEW
@given(SIDE, SIDE, SIDE, st.integers(1, 5))
def test_all_at_once_is_the_concurrent_time(m, n, k, rounds):
    degrees = np.array([1, 2, 3, 4, 8, 16, 32])
    time = waiting_time(*inputs(m, n, k), degrees, degrees, rounds)
    assert (time == concurrent_time(*inputs(m, n, k), degrees, rounds)).all()


@FEW
@given(SIDE, SIDE, SIDE, st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 3]))
def test_more_that_wait_take_no_less_time(m, n, k, degree, rounds):
    time = waiting_time(*inputs(m, n, k), degree * np.arange(1, 40), degree, rounds)
    assert (np.diff(time) >= 0).all()


@FEW
@given(SIDE, SIDE, SIDE)
def test_a_round_of_a_stream_is_no_slower_than_one_run_once(m, n, k):
    waiting = np.array([1, 2, 4, 8, 16])
    time = waiting_time(*inputs(m, n, k), waiting, 1, np.array([[1], [3], [30]])[..., None])
    assert (np.diff(time, axis=0) <= 1e-9 * time[1:]).all()


def test_one_by_one_with_resident_operands():
    # 16 x 0.4 MB stay in L2: sixteen isolated times, but one start of the graph in each round.
    waiting, rounds = 16, np.array([1, 3, 10])
    time = waiting_time(*inputs(256, 256, 256), waiting, 1, rounds)
    start = MACHINE.graph_start_s
    alone = isolated_time(*inputs(256, 256, 256)) - start / ROUNDS
    np.testing.assert_allclose(time, waiting * alone + start / rounds, rtol=1e-4)


def test_operands_that_l2_does_not_hold():
    # 16 x 6.3 MB are three times the capacity: each launch finds its operands gone. Kernels that
    # the matrix pipe binds hardly mind; the fastest does.
    time = waiting_time(*inputs(1024, 1024, 1024), np.array([2, 16]), 1, 3)
    ratio = time[:, 1] / time[:, 0]
    assert ratio[np.argmin(time[:, 0])] > 9
    assert ratio.min() > 7.8


def test_a_graph_of_little_work_waits_for_the_next():
    time = waiting_time(*inputs(64, 64, 64), 1, 1, 1)
    assert time.min() == MACHINE.graph_interval_s
    assert waiting_time(*inputs(64, 64, 64), 1, 1, 100).min() < 0.8 * MACHINE.graph_interval_s


@pytest.fixture(scope="module")
def shipped():
    return read_waiting(TABLE)


@pytest.fixture(scope="module")
def report(shipped):
    return validate_waiting(shipped, H200)


def test_the_bar_of_the_error(report):
    assert (report["rows"], report["skipped"]) == (21_344, {})
    assert report["waiting_mape_pct"] == report["mape_pct"] <= 7.5
    assert len(report["by_protocol"]) == 28
    assert sum(errors["rows"] for errors in report["by_protocol"]) == 21_344
    for errors in report["by_protocol"]:
        # 16 branches start on one of two levels; run once, nothing hides that.
        noisy = (errors["concurrency_degree"], errors["rounds"]) == (16, 1)
        assert errors["mape_pct"] <= (20 if noisy else 10), errors


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("waiting", [2, 4, 8, 16])
def test_the_bar_of_the_regret(shipped, waiting, rounds):
    rows, _ = waiting_selected(shipped[shipped["waiting"] == waiting], H200)
    rows = waiting_predictions(rows[rows["rounds"] == rounds], H200)
    contests = rows.groupby(["m", "n", "k"])
    picked = rows.loc[contests["predicted_us"].idxmin(), "time_of_all_us"].to_numpy()
    regret = np.exp(np.log(picked / contests["time_of_all_us"].min()).mean())
    assert 1 <= regret <= 1.045


def planted(shipped, truth):
    """Rows of some GEMMs with the times that the model gives them: equal, and waiting."""
    equal = read_measurements(data_path("measurements", "h200", "gemm_concurrent.csv.gz"))
    equal, _ = selected(with_resources(kernel_rows(equal), H200), H200)
    waiting, _ = waiting_selected(shipped, H200)
    equal = rows_of(equal[equal["k"] % 3 == 0].iloc[::31], H200, "fp16")
    waiting = waiting_rows_of(waiting[waiting["k"] % 3 == 0].iloc[::13], H200, "fp16")
    launches = replace(waiting.launches, seconds=waiting.predicted(H200, truth))
    return replace(equal, seconds=equal.predicted(H200, truth)), replace(waiting, launches=launches)


def test_planted_graph_parameters_are_recovered(shipped):
    own = values_of(H200)
    truth = own | {"graph_start_s": 1.8e-6, "graph_interval_s": 6.1e-6}
    values, _, residuals = fit(list(planted(shipped, truth)), H200, own, OF_WAITING)
    assert np.abs(residuals).max() < 1e-4
    assert {name: values[name] for name in OF_WAITING} == {
        name: pytest.approx(truth[name], rel=1e-3) for name in OF_WAITING}


def test_calibrate_takes_rows_that_wait(shipped):
    equal, waiting = planted(shipped, values_of(H200))
    found = calibrate([equal, waiting], H200, ["a.csv", "b.csv"])
    assert found.fit["rows"] == len(equal.seconds) + len(waiting.seconds)
    assert not set(OF_WAITING) & set(found.fit["not_determined"])
    # The stated range and interval are those of equal GEMMs together.
    assert found.fit["ranges"]["rounds"] == [3, 3]
    for name in OF_WAITING:
        fitted = found.fitted[name]
        assert fitted.value == pytest.approx(H200.fitted[name].value, rel=0.05)
        assert 0 < fitted.standard_error < 0.05 * fitted.value


@pytest.fixture
def few(tmp_path):
    path = tmp_path / "few.csv"
    lines = gzip.open(TABLE, "rt").readlines()[:9]
    path.write_text("".join(lines))
    return path, lines


def test_command_line(few, capsys):
    path, _ = few
    assert main(["validate", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 8
    assert report["waiting_mape_pct"] == pytest.approx(report["mape_pct"])
    keys = {"waiting", "concurrency_degree", "rounds", "rows", "mape_pct", "bias_pct"}
    assert all(keys <= set(errors) for errors in report["by_protocol"])
    assert main(["validate", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "8 rows of GEMMs that wait" in printed
    assert printed.splitlines()[2].split() == [
        "waiting", "degree", "rounds", "rows", "MAPE", "%", "bias", "%"]


def test_beside_another_table(few, tmp_path, capsys):
    equal = tmp_path / "equal.csv"
    source = data_path("measurements", "h200", "gemm_concurrent.csv.gz")
    equal.write_text("".join(gzip.open(source, "rt").readlines()[:9]))
    assert main(["validate", str(few[0]), str(equal), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["waiting_mape_pct"] == report["waiting_tables"][0]["mape_pct"]
    assert report["waiting_tables"][0]["rows"] == 8
    assert report["rows"] == sum(errors["rows"] for errors in report["by_degree"].values())


def test_what_does_not_divide_is_skipped_and_counted(few, capsys):
    path, lines = few
    row = lines[1].split(",")
    row[11:13] = ["3", "2"]
    path.write_text("".join([*lines, ",".join(row)]))
    assert main(["validate", str(path)]) == 0
    assert "skipped 1: waiting is no multiple of the degree" in capsys.readouterr().out
