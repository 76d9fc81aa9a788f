"""``perfmodel measure`` on runs recorded on an H200, and its refusals where there is no GPU."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfmodel.cli import main
from perfmodel.device_files import load_device
from perfmodel.live import open_gpu
from perfmodel.live.recorded import Recorded
from perfmodel.measurements.table import (
    kernel_rows, library_rows, read_kernels, read_measurements, read_members, read_waiting)

NOTES = json.loads((Path(__file__).parent / "recorded" / "h200.json").read_text(encoding="utf-8"))
GEMMS = ["--gemm", "512x1024x2048", "--gemm", "64x512x512", "--gemm", "384x384x96"]

#: The kernels of the record; the last needs more LDS than there is.
KERNELS = """macro_tile_m,macro_tile_n,depth_u,stages,warps,split_k
64,64,64,4,4,1
64,64,64,4,4,4
128,128,64,3,8,1
128,256,64,4,8,1
256,256,128,4,8,1
"""


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """The machine has the H200 of the record; the folder has k.csv."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(open_gpu, "open_gpu", lambda seed=0, captured=True: Recorded(NOTES))
    Path("k.csv").write_text(KERNELS, encoding="utf-8")


def _measure(*arguments):
    return main(["measure", "--device", "h200", "--kernels", "k.csv", *arguments])


def _repeat(*arguments):
    return main(["measure", "--device", "h200", "--repeat", *arguments])


def test_a_measurement_table(recorded, capsys):
    assert _measure(*GEMMS, "--degree", "1,2,4", "-o", "times.csv") == 0
    said = capsys.readouterr().out
    assert "45 rows measured" in said
    assert "kernel 256x256x128 s4 w8 z1 left out: OutOfResources" in said
    table = read_measurements("times.csv")
    # 3 GEMMs x 3 degrees x (4 kernels and the library)
    assert (len(kernel_rows(table)), len(library_rows(table))) == (36, 9)
    assert set(table["library"]) == {"triton", "cublas"}
    assert table[["time_spread_pct", "clock_mhz", "power_w"]].notna().all().all()
    resources = read_kernels("times.kernels.csv")
    assert resources["lds_bytes"].tolist()[:2] == [65536, 65536]
    assert resources["matrix_waits_per_step"].notna().all()


def test_time_is_that_of_a_round(recorded):
    _measure("--gemm", "512x1024x2048", "--degree", "2", "-o", "times.csv")
    table = kernel_rows(read_measurements("times.csv")).iloc[0]
    key = ("fp16 -1 | 512x1024x2048x1/64.64.64.4.4.1:0,0,0"
           " | 512x1024x2048x1/64.64.64.4.4.1:1,1,1")
    assert table["time_us"] == pytest.approx(NOTES["time"][key][0] / 3 * 1e6, abs=1e-4)


def test_what_is_measured_is_kept(recorded, capsys):
    _measure(*GEMMS, "--degree", "1,2", "-o", "times.csv.gz")
    before = read_measurements("times.csv.gz")
    capsys.readouterr()
    assert _measure(*GEMMS, "--degree", "1,2,4", "-o", "times.csv.gz", "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == {"kept": 30, "measured": 15}
    after = read_measurements("times.csv.gz")
    pd.testing.assert_frame_equal(after.iloc[:30], before)


def test_measured_rows_are_validated_and_predicted_well(recorded, capsys):
    _measure(*GEMMS, "--degree", "1,2,4", "-o", "times.csv")
    capsys.readouterr()
    assert main(["validate", "times.csv", "--kernels", "times.kernels.csv", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 36
    assert report["estimated_resources"] == 0
    assert report["mape_pct"] < 10


def test_other_conditions(recorded):
    assert _measure(*GEMMS, "--cache", "cold", "--degree", "1,2", "-o", "cold.csv") == 0
    cold = read_measurements("cold.csv")
    assert set(cold["cache"]) == {"cold"} and set(cold["rounds"]) == {1}
    assert _measure(*GEMMS, "--dtype", "fp8", "--degree", "1", "-o", "fp8.csv") == 0
    assert set(read_measurements("fp8.csv")["trans_b"]) == {"T"}
    assert set(read_kernels("fp8.kernels.csv")["dtype"]) == {"fp8"}


def test_different_gemms(recorded):
    assert _measure(*GEMMS, "--mixed", "3", "--seed", "1", "-o", "pairs.csv") == 0
    table, members = read_members("pairs.csv")
    assert members == 2 and len(table) == 6
    assert sorted(set(table["carveout_pct"])) == [-1, 100]
    longest = table[["isolated_time_1_us", "isolated_time_2_us"]].max(axis=1)
    assert (table["concurrent_time_us"] > 0.8 * longest).all()


def test_picks_are_verified(recorded, capsys):
    assert _measure(*GEMMS, "--verify", "--waiting", "4", "-o", "verify.csv", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert Path("verify.png").stat().st_size > 10_000
    assert len(library_rows(read_waiting("verify.csv"))) == 3 * 3 * 2
    once, streaming = report["verified"]
    assert (once["waiting"], once["rounds"], streaming["rounds"]) == (4, 1, 3)
    for found in report["verified"]:
        speed = found["over_sequential"]
        assert speed["sequential"] == 1
        assert speed["best"] >= max(speed.values())
        assert 1 <= found["regret_dynamic"] < 1.1
        assert found["over_default"]["default"] == 1


def test_verified_as_text(recorded, capsys):
    _measure(*GEMMS, "--verify", "--waiting", "4", "-o", "verify.csv")
    said = capsys.readouterr().out
    assert "4 waiting, own operands, run once: measured times of 3 GEMMs, geometric means" in said
    assert "written: verify.csv, verify.kernels.csv, verify.png" in said


def test_rows_are_repeated(recorded, capsys):
    _measure(*GEMMS, "--degree", "1,2,4", "-o", "times.csv")
    capsys.readouterr()
    assert _repeat("times.csv", "--rows", "20", "--seed", "2", "-o", "again.csv", "--json") == 0
    repeated = json.loads(capsys.readouterr().out)["repeated"]
    # The record plays the same times back.
    assert repeated["all"]["rows"] == 20
    assert repeated["all"]["mean_abs_pct"] == 0


def test_the_probe_writes_a_device_file(recorded, capsys):
    assert main(["measure", "--probe", "-o", "My GPU.toml"]) == 0
    assert "written: My GPU.toml" in capsys.readouterr().out
    probed, shipped = load_device("My GPU.toml"), load_device("h200")
    assert (probed.name, probed.title, probed.vendor) == ("my-gpu", "NVIDIA H200", "nvidia")
    assert probed.architecture == shipped.architecture
    same = [name for name in shipped.sources if name.endswith(
        ("compute_unit", "_workgroup", "_limit", "_wavefront", "_unit", "l2_bytes"))
        and isinstance(getattr(shipped, name), int)]
    assert len(same) > 8
    for name in same:
        assert getattr(probed, name) == getattr(shipped, name), name
    assert probed.hbm_bytes_per_s == pytest.approx(shipped.hbm_bytes_per_s, rel=0.02)
    assert probed.sources["hbm_bytes_per_s"].spread_pct == 0.31
    assert probed.sources["compute_units"].spread_pct is None


def test_rows_of_other_devices_are_no_repeats(recorded):
    from perfmodel.measurements.repeats import repeats

    _measure(*GEMMS, "--degree", "1", "-o", "times.csv")
    table = read_measurements("times.csv")
    both = pd.concat([table, table.assign(device="a100-40gb", time_us=2 * table["time_us"])],
                     ignore_index=True)
    again = repeats(both, both)
    assert len(again) == len(both) and (again["change_pct"] == 0).all()


def test_kernels_of_another_gpu_are_left_alone(recorded, monkeypatch, capsys):
    _measure(*GEMMS, "--degree", "1", "-o", "times.csv")
    content = Path("times.kernels.csv").read_bytes()
    Path("times.kernels.csv").write_bytes(content + b"\n")
    monkeypatch.setattr(
        Recorded, "gpu", lambda self: NOTES["gpu"] | {"gpu": "NVIDIA A100-SXM4-80GB"})
    assert _measure(*GEMMS, "--degree", "1,2", "-o", "times.csv") == 2
    assert ("times.csv: gpu of its rows is NVIDIA H200, here it is NVIDIA A100-SXM4-80GB: give a"
            " new name\n") in capsys.readouterr().err
    assert Path("times.kernels.csv").read_bytes() == content + b"\n"


def test_nothing_measured_is_no_success(recorded, monkeypatch, capsys):
    monkeypatch.setattr(
        Recorded, "check", lambda self, gemm, kernel, setting: "wrong result: relative error 1")
    assert _measure(*GEMMS, "--degree", "1", "--no-library", "-o", "times.csv") == 1
    assert capsys.readouterr().err == (
        "perfmodel measure: no row was measured: 12 rows wrong result: relative error 1\n")


def test_rows_of_the_library_alone_are_repeated(recorded, capsys):
    _measure(*GEMMS, "--degree", "1,2", "-o", "times.csv")
    table = pd.read_csv("times.csv")
    table[table["library"] == "cublas"].to_csv("library.csv", index=False)
    capsys.readouterr()
    assert _repeat("library.csv", "-o", "again.csv") == 0
    assert "\nwritten: again.csv\n" in capsys.readouterr().out
    assert len(library_rows(read_measurements("again.csv"))) == 6
    assert _repeat("times.csv", "--no-library", "-o", "own.csv") == 0
    assert set(read_measurements("own.csv")["library"]) == {"triton"}


def test_an_interrupted_draw_names_its_seed(recorded, monkeypatch, capsys):
    def interrupt(self, branches, setting):
        raise KeyboardInterrupt

    monkeypatch.setattr(Recorded, "time", interrupt)
    assert _measure(*GEMMS, "--mixed", "3", "-o", "pairs.csv") == 130
    said = capsys.readouterr().err
    assert re.match(r"go on with this, should it be interrupted, by --seed [1-9][0-9]*\n", said)
    _measure(*GEMMS, "--mixed", "3", "--seed", "1", "-o", "pairs.csv")
    _measure(*GEMMS, "--degree", "1", "-o", "times.csv")
    assert "--seed" not in capsys.readouterr().err


def test_a_kernel_table_that_does_not_tell_the_dtype_is_left_alone(recorded, capsys):
    Path("times.kernels.csv").write_text(KERNELS, encoding="utf-8")
    assert _measure(*GEMMS, "--degree", "1", "-o", "times.csv") == 2
    assert capsys.readouterr().err == (
        "perfmodel measure: times.kernels.csv: another table: it lacks the column dtype;"
        " give a new name\n")
    assert Path("times.kernels.csv").read_text(encoding="utf-8") == KERNELS


def test_more_branches_than_torch_has_streams_are_not_repeated(recorded, capsys):
    _measure(*GEMMS, "--degree", "1", "-o", "times.csv")
    table = pd.read_csv("times.csv")
    table.assign(concurrency_degree=33).to_csv("many.csv", index=False)
    assert _repeat("many.csv", "-o", "again.csv") == 2
    assert "concurrency_degree must be at most 32, not 33 (many.csv)" in capsys.readouterr().err


class Broken(Recorded):
    """A GPU that fails as soon as it is asked for anything."""

    def readings(self, advance):
        raise RuntimeError("CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA")

    def prepare(self, kernels, gemms, setting, advance):
        raise RuntimeError("CUDA error: device lost\nCompile with TORCH_USE_CUDA_DSA")


@pytest.mark.parametrize(("arguments", "message"), [
    (["--probe", "-o", "x.toml"], "probing failed: RuntimeError: CUDA error: out of memory"),
    (["--device", "h200", *GEMMS, "-o", "x.csv"],
     "compiling failed: RuntimeError: CUDA error: device lost"),
])
def test_a_gpu_that_fails_is_one_line(recorded, monkeypatch, capsys, arguments, message):
    monkeypatch.setattr(open_gpu, "open_gpu", lambda seed=0, captured=True: Broken(NOTES))
    assert main(["measure", *arguments]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"perfmodel measure: {message}"
    assert not list(Path().glob("x.*"))


@pytest.mark.skipif(find_spec("torch") is None or find_spec("triton") is None,
                    reason="needs torch and triton")
def test_a_broken_torch_is_one_line(monkeypatch):
    import torch

    def broken():
        raise ImportError("libcudart.so: cannot open shared object file")

    monkeypatch.setattr(torch.cuda, "is_available", broken)
    with pytest.raises(OSError, match="^the GPU cannot be used: ImportError: libcudart.so"):
        open_gpu.open_gpu()


def test_a_probed_device_can_borrow_parameters_and_predict(recorded, capsys):
    main(["measure", "--probe", "-o", "mine.toml"])
    capsys.readouterr()
    assert main(["predict", "mine.toml", "--parameters-from", "h200", "--gemm", "512x1024x2048",
                 "--degree", "8", "--json"]) == 0
    # The same chip, probed or described.
    time = json.loads(capsys.readouterr().out)["go_kernel"]["concurrent_time_us"]
    assert 25 < time < 45


@pytest.mark.parametrize(("arguments", "message"), [
    (["-o", "x.csv"], "--device is needed"),
    (["--device", "h200", "-o", "x.txt"], "-o x.txt: a table ends in .csv or .csv.gz"),
    (["--probe", "-o", "x.csv"], "-o x.csv: a device file ends in .toml"),
    (["--device", "h200", "-o", "x.csv", "--dtype", "fp64"], "--dtype"),
    (["--device", "h200", "-o", "x.csv", "--degree", "0"], "--degree must be"),
    (["--device", "h200", "-o", "x.csv", "--degree", "1,,2"], "--degree must be"),
    (["--device", "h200", "-o", "x.csv", "--minutes", "-1"], "--minutes must be"),
    (["--device", "h200", "-o", "x.csv", "--minutes", ""], "--minutes must be"),
    (["--device", "h200", "-o", "x.csv", "--degree", "33"], "--degree must be an integer from 1"),
    (["--device", "h200", "-o", "x.csv", "--waiting", "64"],
     "--waiting must be an integer from 1 to 32, not '64'"),
    (["--device", "h200", "-o", "x.csv", "--repeat", "./x.csv"], "the table that is repeated"),
    (["--device", "h200", "-o", "x.csv", "--gemm", "64x64"], "GEMM must be"),
    (["--device", "h200", "-o", "x.csv", "--mixed", "2", "--waiting", "4"],
     "--waiting means nothing with --mixed"),
    (["--device", "h200", "-o", "x.csv", "--mixed", "2", "--carveout", "101"], "--carveout must"),
    (["--device", "h200", "-o", "x.csv", "--gemm", "64x64x64", "--mixed", "2"], "--members must"),
    (["--device", "h200", "-o", "x.csv", "--probe", "--verify"], "--verify means nothing with --probe"),
    (["--device", "v100", "-o", "x.csv", "--verify"], "v100"),
    (["--device", "h200", "-o", "x.csv", "--repeat", "none.csv"], "none.csv: cannot be read"),
    (["--device", "h200", "-o", "x.csv", "--mixed", "2", "--cache", "cold"],
     "--cache means nothing with --mixed"),
    (["--device", "h200", "-o", "x.csv", "--waiting", "2", "--cache", "cold"],
     "--cache means nothing with --waiting"),
    (["--device", "h200", "-o", "x.csv", "--verify", "--cache", "cold"],
     "--cache means nothing with --verify"),
    (["--device", "h200", "-o", "x.csv", "--mixed", "2", "--gemm", "64x64x64x3", "--draw", "4"],
     "batch must be 1 with --mixed, not 3 (GEMM 64x64x64x3)"),
    (["--device", "h200", "-o", "x.csv", "--gemm", "65536x64x32768"],
     "elements of a matrix must be at most 2147483647, not 2147483648 (GEMM 65536x64x32768x1)"),
    (["--device", "h200", "-o", "x.csv", "--gemm", "1x1x1x65536"],
     "batch must be at most 65535, not 65536 (GEMM 1x1x1x65536)"),
    (["--device", "h200", "-o", "x.csv", "--gemms", "none.csv"], "none.csv: cannot be read"),
    (["--device", "h200", "-o", "x.csv", "--members", "3"], "--members means nothing without --mixed"),
    (["--device", "h200", "-o", "x.csv", "--verify", "--degree", "2"],
     "--degree means nothing with --verify"),
    (["--device", "h200", "-o", "x.toml", "--probe"], "--device means nothing with --probe"),
    (["--device", "h200", "-o", "x.csv", "--mixed", ""], "--mixed must be"),
    (["--device", "h200", "-o", "x.csv", "--repeat", "x.csv"], "the table that is repeated"),
])
def test_bad_input_is_one_line(recorded, capsys, arguments, message):
    assert main(["measure", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not Path("x.csv").exists() and not Path("x.kernels.csv").exists()


def test_another_table_is_left_alone(recorded, capsys):
    _measure(*GEMMS, "--mixed", "3", "--seed", "1", "-o", "pairs.csv")
    content = Path("pairs.csv").read_bytes()
    assert _measure(*GEMMS, "--degree", "1", "-o", "pairs.csv") == 2
    assert "pairs.csv: another table: it lacks the columns" in capsys.readouterr().err
    assert Path("pairs.csv").read_bytes() == content


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_one_line_says_what_is_missing(capsys, tmp_path):
    assert main(["measure", "--device", "h200", "-o", str(tmp_path / "x.csv")]) == 1
    assert capsys.readouterr().err == (
        "perfmodel measure: measuring needs torch and triton (the extra 'measure')\n")


def test_rows_of_the_shipped_table_were_repeated_within_its_error():
    from perfmodel.measurements.repeats import repeat_errors, repeats
    from perfmodel.resources import data_path

    folder = data_path("measurements", "h200")
    both = repeats(read_measurements(folder / "gemm_concurrent.csv.gz"),
                   read_measurements(folder / "micro" / "repeated.csv.gz"))
    errors = repeat_errors(both)
    assert errors["rows"]["all"] == 2160
    # Another machine moved them by 2.4 %.
    assert errors["mean_abs_pct"]["all"] < 2.7
    assert abs(errors["median_pct"]["all"]) < 0.1
    assert np.isfinite(errors.to_numpy(float)).all()
