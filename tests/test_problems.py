"""GEMM problems: sizes, work, parsing and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.problems import BYTES_PER_ELEMENT, SIZE_LIMIT, gemms, parse_gemm

SIDES = st.integers(1, SIZE_LIMIT)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("512x1024x2048", (512, 1024, 2048, 1)), ("1x2x3x8", (1, 2, 3, 8))],
)
def test_parse_gemm(text, sizes):
    problem = parse_gemm(text, "bf16")
    assert (problem.m[0], problem.n[0], problem.k[0], problem.batch[0]) == sizes
    assert (len(problem), problem.dtype) == (1, "bf16")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("0x2x3", "m must be an integer from 1 to 16777216, not '0' (in GEMM '0x2x3')"),
        ("1x-2x3", "n must be an integer from 1 to 16777216, not '-2' (in GEMM '1x-2x3')"),
        ("1x2x3.5", "k must be an integer from 1 to 16777216, not '3.5' (in GEMM '1x2x3.5')"),
        ("1x2x", "k must be an integer from 1 to 16777216, not '' (in GEMM '1x2x')"),
        (
            "16777217x2x3",
            "m must be an integer from 1 to 16777216, not '16777217' (in GEMM '16777217x2x3')",
        ),
        ("1x2x3x0", "batch must be an integer from 1 to 16777216, not '0' (in GEMM '1x2x3x0')"),
        ("512", "GEMM must be MxNxK or MxNxKxBATCH, such as 512x1024x2048, not '512'"),
        ("1x2x3x4x5", "GEMM must be MxNxK or MxNxKxBATCH, such as 512x1024x2048, not '1x2x3x4x5'"),
    ],
)
def test_parse_gemm_refuses(text, line):
    with pytest.raises(ValueError) as refused:
        parse_gemm(text)
    assert str(refused.value) == line


@pytest.mark.parametrize(
    ("sizes", "line"),
    [
        ({"m": [4, 0]}, "m must be an integer from 1 to 16777216, not 0"),
        ({"n": 2.5}, "n must be an integer from 1 to 16777216, not 2.5"),
        ({"k": np.nan}, "k must be an integer from 1 to 16777216, not nan"),
        ({"k": []}, "k must be an integer from 1 to 16777216, not empty"),
        ({"batch": True}, "batch must be an integer from 1 to 16777216, not True"),
        ({"m": [[1]]}, "m must be a scalar or of shape (problem,), not (1, 1)"),
        (
            {"m": [1, 2], "n": [1, 2, 3]},
            "m, n, k and batch must broadcast to one axis, not m (2,), n (3,), k (1,), batch (1,)",
        ),
        (
            {"dtype": "fp12"},
            "dtype must be one of fp64, fp32, tf32, fp16, bf16, fp8, int8, not 'fp12'",
        ),
    ],
)
def test_gemms_refuses(sizes, line):
    with pytest.raises(ValueError) as refused:
        gemms(**{"m": 1, "n": 1, "k": 1, **sizes})
    assert str(refused.value) == line


def test_flop_does_not_overflow():
    # 2 x (2^24)^4 = 2^97, far beyond int64.
    side = np.int32(SIZE_LIMIT)
    assert gemms(side, side, side, side).flop[0] == 2.0**97


@given(st.tuples(SIDES, SIDES, SIDES, SIDES))
def test_labels_parse_back(sizes):
    problem = gemms(*sizes)
    again = parse_gemm(problem.labels[0])
    assert [int(getattr(again, name)[0]) for name in ("m", "n", "k", "batch")] == list(sizes)


def test_arrays_are_copies():
    m = np.array([1, 2])
    problem = gemms(m, 1, 1)
    m[0] = 7
    assert problem.m[0] == 1


@pytest.mark.parametrize(("dtype", "size"), BYTES_PER_ELEMENT.items())
def test_bytes_per_element(dtype, size):
    assert gemms(1, 1, 1, dtype=dtype).bytes_per_element == size
