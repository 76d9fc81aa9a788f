"""Refusals of the user layer, whole lines; files whole or not at all."""

import math

import numpy as np
import pandas as pd
import pytest

from perfmodel.checks import one_of, positive_integer, positive_number
from perfmodel.files import replacing, write_table_atomic, write_text_atomic
from perfmodel.resources import data_path
from perfmodel.toml_text import toml_value


@pytest.mark.parametrize("value", [7, "7", " 7 ", "+7", np.int32(7), np.uint8(7)])
def test_positive_integer_takes_integers_and_their_digits(value):
    number = positive_integer("m", value)
    assert number == 7 and type(number) is int


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"), (-3, "-3"), ("0", "'0'"), ("-3", "'-3'"), (2.0, "2.0"), ("2.5", "'2.5'"),
        ("1e3", "'1e3'"), ("", "''"), ("many", "'many'"), (math.nan, "nan"), (True, "True"),
        (65, "65"), ("9" * 5000, repr("9" * 5000)),
    ],
)
def test_positive_integer_refuses(value, shown):
    with pytest.raises(ValueError) as refused:
        positive_integer("--degree", value, 64, "in a test")
    line = f"--degree must be an integer from 1 to 64, not {shown} (in a test)"
    assert str(refused.value) == line


@pytest.mark.parametrize("value", [2, 2.0, "2", "2e0", np.float32(2)])
def test_positive_number_takes_numbers_and_their_text(value):
    number = positive_number("gap", value)
    assert number == 2 and type(number) is float


@pytest.mark.parametrize("value", [0, -1.5, math.nan, math.inf, "nan", "x", None, True, 10**400])
def test_positive_number_refuses(value):
    with pytest.raises(ValueError, match="^gap must be a finite number above 0, not "):
        positive_number("gap", value)


def test_one_of_lists_the_valid_values():
    with pytest.raises(ValueError) as refused:
        one_of("--dtype", "fp61", ("fp16", "fp32"))
    assert str(refused.value) == "--dtype must be one of fp16, fp32, not 'fp61'"


def test_write_text_replaces_the_file_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "a.txt"
    write_text_atomic(path, "old")
    write_text_atomic(path, "new\n")
    assert path.read_text() == "new\n"
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o400


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    write_text_atomic(path, "old")
    with pytest.raises(KeyError), replacing(path) as temporary:
        temporary.write_text("half")
        raise KeyError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "reason"), [("no/such/a.txt", "No such file or directory"), ("", "it is a folder"),
     ("/dev/null", "it is not a regular file")]
)
def test_a_file_that_cannot_be_written_is_one_line(tmp_path, name, reason):
    path = tmp_path / name
    with pytest.raises(OSError) as refused:
        write_text_atomic(path, "text")
    assert str(refused.value) == f"cannot write {path}: {reason}"


def test_the_same_table_gives_the_same_bytes(tmp_path):
    table = pd.DataFrame({"m": [1, 2], "time_us": [0.1, 3.5]})
    contents = []
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table_atomic(tmp_path / name, table)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "a.csv.gz"), table)


def test_data_path_names_what_is_not_shipped():
    with pytest.raises(ValueError, match="^devices/abacus.toml is not among the shipped data"):
        data_path("devices", "abacus.toml")


@pytest.mark.parametrize("value", [None, math.nan, math.inf, 1j, {1, 2}])
def test_toml_refuses_what_it_cannot_hold(value):
    with pytest.raises(ValueError, match="^TOML cannot hold "):
        toml_value(value)


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_text_atomic(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
