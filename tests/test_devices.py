"""Device records and files: shipped values, what-if, fits, round trips, refusals."""

import pickle

import numpy as np
import pytest

from perfmodel.device_files import (
    device_names,
    dump_device,
    load_device,
    parse_device,
    write_device,
)
from perfmodel.devices import UNITS, Fitted, replace_fields, with_fit

HEAD = 'name = "x"\ntitle = "X"\nvendor = "nvidia"\narchitecture = "a"\n'

#: Peak of the dense matrix unit: NVIDIA's tables give it at the clock they state it for, 1.83 GHz
#: for the H100 SXM's and 1.62 GHz for the PCIe's 16-bit rates (the notes of the device files).
PEAKS = [
    ("h200", "fp16", 1.83e9, 989.4),
    ("h100-sxm", "fp8", 1.83e9, 1978.9),
    ("h100-pcie", "bf16", 1.62e9, 756),
    ("a100-40gb", "fp16", 1.41e9, 312),
    ("a100-80gb", "tf32", 1.41e9, 156),
    ("v100", "fp16", 1.53e9, 125),
]


def test_names():
    assert device_names() == (
        "a100-40gb", "a100-80gb", "b200", "h100-pcie", "h100-sxm", "h200", "v100",
    )


@pytest.mark.parametrize("name", device_names())
def test_every_shipped_file_loads_and_says_where_each_value_is_from(name):
    device = load_device(name)
    assert device.name == name
    assert set(device.sources) == {field for field in UNITS if device.has(field)}
    assert all(source.source and source.checked for source in device.sources.values())
    assert not device.fitted or device.fit


@pytest.mark.parametrize(("name", "dtype", "clock_hz", "tflops"), PEAKS)
def test_matrix_rates_give_the_published_peaks(name, dtype, clock_hz, tflops):
    device = load_device(name)
    peak = device.matrix_rate(dtype) * device.compute_units * clock_hz / 1e12
    assert peak == pytest.approx(tflops, rel=3e-3)


@pytest.mark.parametrize("name", device_names())
def test_round_trip(name):
    device = load_device(name)
    assert parse_device(dump_device(device)) == device
    assert pickle.loads(pickle.dumps(device)) == device


def test_round_trip_with_a_fit(tmp_path):
    fitted = {
        "gap_s": Fitted(1.345e-6, 3.0e-8, "s"),
        "mma": Fitted(np.float64(3509.0), 77.0, "FLOP/clk"),
    }
    fit = {
        "rows": np.int64(56550),
        "date": "2026-12-01",
        "files": ["gemm_concurrent.csv.gz", 'odd "name"\n.csv'],
        "folds": {"0": {"gap_s": 1.3e-6}, "1": {"mma": 3500.5}},
        "notes": {"gap_s": [1.3e-6, 1.4e-6], "1": {"converged": True}},
    }
    plain = with_fit(load_device("h200"), {}, {})
    device = with_fit(plain, fitted, fit)
    path = tmp_path / "mine.toml"
    write_device(path, device)
    again = load_device(path)
    assert again == device
    assert again.fitted["mma"] == Fitted(3509.0, 77.0, "FLOP/clk")
    assert with_fit(again, {}, {}) == plain


def test_a_fit_that_is_not_finite_is_not_written(tmp_path):
    device = with_fit(load_device("h200"), {"gap_s": Fitted(float("nan"), 0.0, "s")}, {})
    with pytest.raises(ValueError, match="^TOML cannot hold nan"):
        write_device(tmp_path / "mine.toml", device)
    assert list(tmp_path.iterdir()) == []


def test_measured_replaces_datasheet_and_both_are_kept():
    device = load_device("h200")
    assert device.hbm_bytes_per_s == 4.22e12
    assert device.sources["hbm_bytes_per_s"].kind == "measured"
    (published,) = device.superseded["hbm_bytes_per_s"]
    assert (published.value, published.kind) == (4.8e12, "datasheet")


def test_what_is_not_known_is_refused():
    device = load_device("b200")
    with pytest.raises(ValueError) as refused:
        device.clock_hz
    assert str(refused.value) == (
        "b200: clock_hz is not known: its device file leaves it out"
        " (add it in a device file of your own)"
    )
    assert not device.has("clock_hz")
    assert repr(device) == "<Gpu b200: NVIDIA B200>"


@pytest.mark.parametrize(
    ("name", "dtype", "line"),
    [
        ("v100", "fp8", "v100: no matrix rate is known for fp8 (known: fp16)"),
        ("b200", "fp16", "b200: no matrix rate is known for fp16 (known: none)"),
    ],
)
def test_a_dtype_the_device_lacks_is_refused(name, dtype, line):
    with pytest.raises(ValueError) as refused:
        load_device(name).matrix_rate(dtype)
    assert str(refused.value) == line


def test_replace_fields_is_marked_as_assumed_and_leaves_the_original():
    device = load_device("h200")
    half = replace_fields(device, {"compute_units": np.int64(66), "hbm_bytes_per_s": 2e12})
    assert (half.compute_units, half.hbm_bytes_per_s, half.clock_hz) == (66, 2e12, 1.98e9)
    assert half.sources["compute_units"].kind == "assumed"
    assert [source.kind for source in half.superseded["hbm_bytes_per_s"]] == [
        "datasheet", "measured",
    ]
    assert device.compute_units == 132
    assert parse_device(dump_device(half)) == half
    assert replace_fields(half, {"compute_units": 33}).superseded["compute_units"] == (
        device.sources["compute_units"],
    )


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"compute_units": 0}, "compute_units must be an integer of at least 1, not 0 (h200)"),
        ({"compute_units": 1.5}, "compute_units must be an integer of at least 1, not 1.5 (h200)"),
        (
            {"hbm_bytes_per_s": float("nan")},
            "hbm_bytes_per_s must be a finite number above 0 [B/s], not nan (h200)",
        ),
    ],
)
def test_replace_fields_refuses(changes, line):
    with pytest.raises(ValueError) as refused:
        replace_fields(load_device("h200"), changes)
    assert str(refused.value) == line


def test_replace_fields_lists_the_fields():
    with pytest.raises(ValueError, match=r"^field must be one of compute_units, .*not 'sms'"):
        replace_fields(load_device("h200"), {"sms": 66})


@pytest.mark.parametrize("name", ["H200", "h200"])
def test_names_in_either_case(name):
    assert load_device(name).name == "h200"


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(ValueError) as refused:
        load_device("h300")
    assert str(refused.value) == (
        f"device must be one of {', '.join(device_names())}, not 'h300'"
        " (or the path of a .toml file)"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name = ", "{path}: not TOML: Invalid value (at end of document)"),
        ('title = "X"', "name is missing ({path})"),
        (
            HEAD.replace("nvidia", "intel"),
            "vendor must be one of nvidia, amd, not 'intel' ({path})",
        ),
        (HEAD.replace('"X"', "3"), "title must be text that is not empty, not 3 ({path})"),
        (
            HEAD + "[fited]\n",
            "key must be one of name, title, vendor, architecture, datasheet, measured, assumed,"
            " fitted, fit, not 'fited' ({path})",
        ),
        (HEAD + "datasheet = 3\n", "datasheet must be a table, not 3 ({path})"),
        (
            HEAD + "[datasheet]\nclock_hz = 1e9\n",
            "clock_hz must be a table {{ value = …, source = …, checked = …,"
            " spread_pct = … }}, not 1000000000.0"
            " ({path}, [datasheet])",
        ),
        (
            HEAD + "[datasheet]\nclock_hz = { value = 1e9 }\n",
            "clock_hz has no source ({path}, [datasheet])",
        ),
        (
            HEAD + '[datasheet]\nclock_hz = { value = -1e9, source = "s" }\n',
            "clock_hz must be a finite number above 0 [Hz], not -1000000000.0"
            " ({path}, [datasheet])",
        ),
        (
            HEAD + '[measured]\nclock_hz = { value = nan, source = "s" }\n',
            "clock_hz must be a finite number above 0 [Hz], not nan ({path}, [measured])",
        ),
        (
            HEAD + '[datasheet]\nl2_bytes = { value = "big", source = "s" }\n',
            "l2_bytes must be an integer of at least 1, not 'big' ({path}, [datasheet])",
        ),
        (
            HEAD + '[datasheet]\nl2_bytes = { value = true, source = "s" }\n',
            "l2_bytes must be an integer of at least 1, not True ({path}, [datasheet])",
        ),
        (
            HEAD + '[datasheet]\nl2_bytes = { value = 1, source = "s", page = 3 }\n',
            "key of l2_bytes must be one of value, source, checked, spread_pct, not 'page'"
            " ({path}, [datasheet])",
        ),
        (
            HEAD + '[measured]\nl2_bytes = { value = 1, source = "s", spread_pct = -1 }\n',
            "l2_bytes.spread_pct must be a finite number of at least 0, not -1"
            " ({path}, [measured])",
        ),
        (
            HEAD + "[fitted]\ngap_s = { value = 1e-6, standard_error = -1.0, unit = 's' }\n",
            "gap_s.standard_error must be 0 or more, not -1.0 ({path}, [fitted])",
        ),
        (
            HEAD + "[fitted]\ngap_s = { value = inf, standard_error = 1.0, unit = 's' }\n",
            "gap_s.value must be a finite number, not inf ({path}, [fitted])",
        ),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path, text, line):
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError) as refused:
        load_device(path)
    assert str(refused.value) == line.format(path=path)


def test_a_field_that_does_not_exist_lists_the_valid_ones(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(HEAD + '[datasheet]\nsms = { value = 1, source = "s" }\n')
    with pytest.raises(ValueError, match=r"^field must be one of compute_units, .*not 'sms'"):
        load_device(path)


def test_a_missing_file_and_one_that_is_not_text(tmp_path):
    missing, binary = tmp_path / "no.toml", tmp_path / "bytes.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError) as refused:
        load_device(missing)
    assert str(refused.value) == f"{missing}: cannot be read: No such file or directory"
    with pytest.raises(ValueError) as refused:
        load_device(str(binary))
    assert str(refused.value) == f"{binary}: not a text file in UTF-8"


def test_a_user_file_needs_only_what_is_used(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + '[assumed]\ncompute_units = { value = 40, source = "a guess" }\n')
    device = load_device(path)
    assert device.compute_units == 40
    assert device.sources["compute_units"].checked == "not stated"
