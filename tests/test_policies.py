"""What policies are worth, on tables worked out by hand."""

import pandas as pd
import pytest

from perfmodel.device_files import load_device
from perfmodel.figures import verification
from perfmodel.measurements.policies import policies, summary
from perfmodel.measurements.table import read_waiting
from perfmodel.resources import data_path

A, B = (64, 64, 64, 4, 4, 1), (128, 128, 64, 3, 8, 1)
COLUMNS = ["library", "m", "n", "k", "macro_tile_m", "macro_tile_n", "depth_u", "stages", "warps",
           "split_k", "waiting", "concurrency_degree", "rounds", "time_of_all_us"]


def _table(tmp_path, rows):
    frame = pd.DataFrame(rows, columns=COLUMNS).assign(device="h200", dtype="fp16")
    tiles = COLUMNS[4:10]
    frame[tiles] = frame[tiles].astype("Int64")
    path = tmp_path / "waiting.csv"
    frame.to_csv(path, index=False)
    return read_waiting(path)


def _row(kernel, degree, time, gemm=(512, 1024, 2048), library="triton"):
    return [library, *gemm, *(kernel or (None,) * 6), 4, degree, 1, time]


def test_a_contest_by_hand(tmp_path):
    table = _table(tmp_path, [
        _row(A, 1, 30.0), _row(A, 2, 25.0), _row(A, 4, 24.0),
        _row(B, 1, 60.0), _row(B, 2, 22.0), _row(B, 4, 20.0),
        _row(None, 1, 40.0, library="cublas"), _row(None, 4, 32.0, library="cublas"),
    ])
    found = policies(table, load_device("h200"))
    assert len(found) == 1
    row = found.iloc[0]
    # A is fastest alone: one by one 30, all at once 24.
    assert row["measured_sequential_us"] == 30.0
    assert row["measured_default_us"] == 24.0
    assert row["measured_library_us"] == 32.0
    assert row["measured_library_sequential_us"] == 40.0
    assert (row["measured_go_best_us"], row["measured_best_us"]) == (20.0, 20.0)
    assert row["measured_go_us"] in (20.0, 24.0) and row["measured_dynamic_us"] >= 20.0
    report = summary(found)[0]
    assert report["over_sequential"]["default"] == pytest.approx(30 / 24)
    assert report["over_default"]["library"] == pytest.approx(24 / 32)
    assert report["over_sequential"]["best"] == pytest.approx(1.5)
    assert report["regret_go"] == pytest.approx(row["measured_go_us"] / 20)


def test_contests_that_cannot_be_compared_are_left_out(tmp_path):
    other = (256, 256, 256)
    table = _table(tmp_path, [
        _row(A, 1, 30.0), _row(A, 4, 24.0),
        # Its kernel fastest one by one was not run all at once.
        _row(A, 1, 10.0, other), _row(B, 1, 20.0, other), _row(B, 4, 9.0, other)])
    assert policies(table, load_device("h200"))["m"].tolist() == [512]
    assert summary(policies(table[table["m"] == 256], load_device("h200"))) == []
    # The first was cut off before its turn of the library came.
    table = _table(tmp_path, [
        _row(A, 1, 30.0), _row(A, 4, 24.0), _row(A, 1, 30.0, other), _row(A, 4, 24.0, other),
        _row(None, 1, 40.0, other, "cublas"), _row(None, 4, 32.0, other, "cublas")])
    assert policies(table, load_device("h200"))["m"].tolist() == [256]


def test_a_kernel_that_the_model_leaves_out_is_measured_all_the_same(tmp_path):
    impossible = (256, 256, 128, 4, 8, 1)  # by the rules for LDS
    table = _table(tmp_path, [
        _row(A, 1, 30.0), _row(A, 4, 24.0), _row(impossible, 1, 15.0), _row(impossible, 4, 12.0)])
    report = summary(policies(table, load_device("h200")))[0]
    assert report["regret_go"] == report["regret_dynamic"] == pytest.approx(24 / 12)
    assert report["over_sequential"]["go"] == pytest.approx(15 / 24)
    assert report["over_default"]["default"] == 1
    assert policies(table[table["macro_tile_m"] == 256], load_device("h200")).empty


def test_other_layouts_and_devices_are_other_contests(tmp_path):
    rows = [_row(A, 1, 30.0), _row(A, 4, 24.0), _row(None, 4, 32.0, library="cublas")]
    table = _table(tmp_path, rows)
    times = table["time_of_all_us"]
    both = pd.concat([
        table.assign(trans_b="N"), table.assign(trans_b="T", time_of_all_us=times / 2),
        table.assign(trans_b="N", time_of_all_us=times / 8, device="a100-40gb"),
    ], ignore_index=True)
    found = policies(both, load_device("h200")).set_index("trans_b")
    assert found["measured_sequential_us"].to_dict() == {"N": 30.0, "T": 15.0}
    assert found["measured_library_us"].to_dict() == {"N": 32.0, "T": 16.0}


def test_no_library_leaves_it_out_of_the_summary(tmp_path):
    table = _table(tmp_path, [_row(A, 1, 30.0), _row(A, 4, 24.0)])
    assert "library" not in summary(policies(table, load_device("h200")))[0]["over_default"]


@pytest.fixture(scope="module")
def proof():
    """The shipped proof, as the figure shows it."""
    return verification.compute()


def test_the_proof_is_of_gemms_that_no_fit_has_seen(proof):
    seen = set(load_device("h200").fit["gemms"])
    drawn = {f"{m}x{n}x{k}" for m, n, k in zip(proof["m"], proof["n"], proof["k"])}
    assert len(drawn) == 57 and not drawn & seen


def test_the_proof_holds_what_the_readme_says(proof):
    once, streaming = summary(proof)
    assert once["over_sequential"]["dynamic"] > 1.8
    assert once["over_default"]["dynamic"] > 1.24
    assert streaming["over_sequential"]["dynamic"] > 2.1
    assert streaming["over_default"]["dynamic"] > 1.16
    for report in (once, streaming):
        assert report["regret_dynamic"] < 1.05
        assert report["prediction_mape_pct"]["dynamic"] < 9


def test_predicted_times_of_the_waiting_table_of_the_proof():
    table = read_waiting(data_path("measurements", "h200", "verify.csv.gz"))
    # Every kernel, degree and GEMM: 57 x (58 kernels and the library) x 5 degrees x 2 rounds
    assert len(table) == 57 * 59 * 5 * 2
