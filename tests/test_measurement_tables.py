"""Measured tables: the shipped ones load as their README says, and each fault is one line."""

import gzip
import time

import numpy as np
import pandas as pd
import pytest

from perfmodel.measurements.table import (
    KERNEL,
    kernel_rows,
    library_rows,
    read_kernels,
    read_measurements,
    read_members,
    read_waiting,
    table_kind,
)
from perfmodel.resources import data_path

HEADER = (
    "device,library,dtype,m,n,k,macro_tile_m,macro_tile_n,depth_u,stages,warps,split_k,"
    "concurrency_degree,rounds,time_us"
)
ROW = "h200,triton,fp16,512,1024,2048,128,64,64,3,4,1,8,3,41.5"
LIBRARY_ROW = "h200,cublas,fp16,512,1024,2048,,,,,,,8,3,44.25"
OTHER_ROW = ROW.replace(",8,3,", ",4,3,")


def _h200(name):
    return data_path("measurements", "h200", name)


def _write(folder, *lines, header=HEADER, name="t.csv", end="\n"):
    path = folder / name
    path.write_bytes(end.join([header, *lines, ""]).encode())
    return path


def _refusal(read, path):
    with pytest.raises(ValueError) as refused:
        read(path)
    line = str(refused.value)
    assert "\n" not in line
    return line.replace(str(path), "FILE")


def test_the_shipped_measurements():
    table = read_measurements(_h200("gemm_concurrent.csv.gz"))
    assert len(table) == 57_525
    assert len(table.drop_duplicates(["m", "n", "k"])) == 195
    assert sorted(table["concurrency_degree"].unique()) == [1, 2, 4, 8, 16]
    kernels = kernel_rows(table)
    assert (len(kernels), len(library_rows(table))) == (56_550, 975)
    assert set(kernels[KERNEL].dtypes.astype(str)) == {"int64"}
    assert set(table[KERNEL].dtypes.astype(str)) == {"Int64"}
    assert set(table[["m", "n", "k", "batch", "rounds"]].dtypes.astype(str)) == {"int64"}
    assert (table["batch"] == 1).all()
    # Every kernel's resources are known.
    known = read_kernels(_h200("kernels.csv"))
    assert len(kernels.merge(known, on=KERNEL)) == len(kernels)


def test_sixty_thousand_rows_are_read_quickly():
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        read_measurements(_h200("gemm_concurrent.csv.gz"))
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


def test_the_shipped_kernels():
    table = read_kernels(_h200("kernels.csv"))
    assert len(table) == 58
    assert (table["register_spills"] == 0).all()


@pytest.mark.parametrize(
    ("name", "rows", "members"),
    [("gemm_pairs", 600, 2), ("mixed_pairs", 1200, 2), ("mixed_quadruples", 600, 4)],
)
def test_the_shipped_tables_of_members(name, rows, members):
    path = _h200(f"{name}.csv.gz")
    table, count = read_members(path)
    assert (len(table), count) == (rows, members)
    assert table_kind(path) == "members"


def test_the_shipped_waiting_table():
    path = _h200("waiting.csv.gz")
    table = read_waiting(path)
    assert len(table) == 21_344
    assert (table["waiting"] % table["concurrency_degree"] == 0).all()
    assert table_kind(path) == "waiting"


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("carveout.csv", 60), ("rounds.csv", 109), ("graph_start.csv", 96), ("l2_read.csv", 77),
        ("protocol.csv.gz", 7800), ("repeat16.csv", 240),
    ],
)
def test_the_shipped_micro_measurements(name, rows):
    table = pd.read_csv(data_path("measurements", "h200", "micro", name))
    assert len(table) == rows
    assert table.notna().all(axis=None)


def test_the_published_values():
    table = pd.read_csv(data_path("published", "v10", "published_values.csv"))
    assert len(table) == 1014
    assert table[["figure", "title"]].notna().all(axis=None)


def test_the_index_is_the_line_of_the_file(tmp_path):
    table = read_measurements(_write(tmp_path, ROW, "", LIBRARY_ROW, "", ""))
    assert table.index.tolist() == [2, 4]
    assert table["time_us"].tolist() == [41.5, 44.25]
    assert kernel_rows(table).index.tolist() == [2]
    assert library_rows(table).index.tolist() == [4]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark(tmp_path, end, mark):
    path = _write(tmp_path, ROW, header=mark + HEADER, end=end)
    assert read_measurements(path)["device"].tolist() == ["h200"]
    assert table_kind(path) == "measurement"


def test_optional_columns(tmp_path):
    header = HEADER + ",batch,trans_a,cache,lds_bytes,note"
    path = _write(tmp_path, ROW + ",4,N,cold,,hello", LIBRARY_ROW + ",1,N,warm,,", header=header)
    table = read_measurements(path)
    assert table["batch"].tolist() == [4, 1]
    assert table["lds_bytes"].isna().all()
    assert table["note"].iloc[0] == "hello"


INTEGER = "must be an integer from 1 to 16777216, not"
TIME = "time_us must be a finite number above 0 [us], not"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (",512,", ",0,", f"m {INTEGER} 0 (FILE, row 3)"),
        (",512,", ",-512,", f"m {INTEGER} -512 (FILE, row 3)"),
        (",512,", ",512.5,", f"m {INTEGER} 512.5 (FILE, row 3)"),
        (",512,", ",,", f"m {INTEGER} empty (FILE, row 3)"),
        (",512,", ",nan,", f"m {INTEGER} 'nan' (FILE, row 3)"),
        (",512,", ",16777217,", f"m {INTEGER} 16777217 (FILE, row 3)"),
        (",512,", "," + "9" * 30 + ",", f"m {INTEGER} 1e+30 (FILE, row 3)"),
        (",512,", ",many,", f"m {INTEGER} 'many' (FILE, row 3)"),
        (",4,3,", ",0,3,", f"concurrency_degree {INTEGER} 0 (FILE, row 3)"),
        (",4,3,", ",4,0,", f"rounds {INTEGER} 0 (FILE, row 3)"),
        (",41.5", ",nan", f"{TIME} 'nan' (FILE, row 3)"),
        (",41.5", ",inf", f"{TIME} inf (FILE, row 3)"),
        (",41.5", ",", f"{TIME} empty (FILE, row 3)"),
        (",41.5", ",-1", f"{TIME} -1 (FILE, row 3)"),
        (",41.5", ",0", f"{TIME} 0 (FILE, row 3)"),
        (",41.5", "", "FILE, row 3: 14 cells; the header has 15 columns"),
        (
            "fp16", "fp12",
            "dtype must be one of fp64, fp32, tf32, fp16, bf16, fp8, int8, not 'fp12'"
            " (FILE, row 3)",
        ),
        ("h200", "", "device must be text that is not empty, not empty (FILE, row 3)"),
        (
            ",128,64,64,3,", ",128,,64,3,",
            "macro_tile_n must be given, or all of macro_tile_m, macro_tile_n, depth_u, stages,"
            " warps, split_k empty, not empty (FILE, row 3)",
        ),
        (
            ",4,3,", ",8,3,",
            "FILE, row 3: repeats row 2 (same device, library, dtype, m, n, k, macro_tile_m,"
            " macro_tile_n, depth_u, stages, warps, split_k, concurrency_degree, rounds)",
        ),
        (
            ",41.5", ",41.5,7",
            "FILE: not CSV: Error tokenizing data. C error: Expected 15 fields in line 3, saw 16",
        ),
    ],
)
def test_a_bad_row_is_named(tmp_path, old, new, line):
    path = _write(tmp_path, ROW, OTHER_ROW.replace(old, new, 1))
    assert _refusal(read_measurements, path) == line


def test_the_first_bad_cell_is_named_and_the_others_are_counted(tmp_path):
    bad = [ROW.replace(",41.5", f",{time}") for time in ("nan", "-3", "x")]
    path = _write(tmp_path, OTHER_ROW, *bad)
    assert _refusal(read_measurements, path) == f"{TIME} 'nan' (FILE, row 3; 2 more)"


def test_repeated_library_rows_are_found_too(tmp_path):
    path = _write(tmp_path, LIBRARY_ROW, ROW, LIBRARY_ROW, LIBRARY_ROW)
    line = _refusal(read_measurements, path)
    assert line.startswith("FILE, row 4: repeats row 2 (same device, ")
    assert line.endswith("; 1 more)")


def test_rows_that_differ_in_an_optional_column_are_not_duplicates(tmp_path):
    path = _write(tmp_path, ROW + ",warm", ROW + ",cold", header=HEADER + ",cache")
    assert len(read_measurements(path)) == 2


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "FILE: the file is empty"),
        (b"\n\n", "FILE: the file is empty"),
        (f"{HEADER}\n".encode(), "FILE: no rows below the header"),
        (f"{HEADER}\n\n\n".encode(), "FILE: no rows below the header"),
        (b"m,n\n1,2,3\n", "FILE, row 2: more cells than the header has columns"),
        (b"m,n,m\n1,2,3\n", "FILE: the header names m twice"),
        (b"\xff\xfem,n\n1,2\n", "FILE: not a text file in UTF-8"),
        (gzip.compress(b"m,n\n1,2\n"), "FILE: the file is gzip but is not named .gz"),
        (
            f"{HEADER}\n".replace(",time_us", "").replace(",rounds", "").encode()
            + b"," * 12 + b"2\n",
            "FILE: a measurement table lacks the columns rounds, time_us",
        ),
    ],
)
def test_a_bad_file_is_named(tmp_path, content, line):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert _refusal(read_measurements, path) == line


def test_files_that_are_not_gzip_or_break_off(tmp_path):
    path = _write(tmp_path, ROW, name="t.csv.gz")
    assert _refusal(read_measurements, path) == "FILE: the file is named .gz but is not gzip"
    path.write_bytes(gzip.compress(f"{HEADER}\n{ROW}\n".encode())[:-12])
    assert _refusal(read_measurements, path).startswith("FILE: damaged gzip file: ")


def test_a_missing_file_and_a_folder(tmp_path):
    path = tmp_path / "no.csv"
    assert _refusal(table_kind, path) == "FILE: cannot be read: No such file or directory"
    assert _refusal(table_kind, tmp_path) == "FILE: cannot be read: Is a directory"


def test_a_table_of_another_kind(tmp_path):
    path = _write(tmp_path, "1,2", header="a,b")
    assert _refusal(table_kind, path) == (
        "FILE: not a measured table: the header has none of the columns m, m_1, waiting"
    )


def test_kernels_need_their_tile_and_nothing_else(tmp_path):
    header = ",".join(KERNEL)
    assert len(read_kernels(_write(tmp_path, "128,64,64,3,4,1", header=header))) == 1
    path = _write(tmp_path, "128,64,64,3,4,1", "128,64,64,3,4,1", header=header)
    assert _refusal(read_kernels, path).startswith("FILE, row 3: repeats row 2 (same macro_tile_m")
    path = _write(tmp_path, "128,64,64,3,4", header=header.replace(",split_k", ""))
    assert _refusal(read_kernels, path) == "FILE: a kernel table lacks the columns split_k"
    path = _write(tmp_path, "128,64,64,3,4,1,-2", header=header + ",lds_bytes")
    assert _refusal(read_kernels, path) == (
        "lds_bytes must be an integer from 0 to 2147483647, not -2 (FILE, row 2)"
    )


def test_members_need_the_columns_of_each(tmp_path):
    source = pd.read_csv(_h200("mixed_quadruples.csv.gz"))
    path = tmp_path / "t.csv"
    source.drop(columns=["k_3", "warps_4"]).to_csv(path, index=False)
    assert _refusal(read_members, path) == (
        "FILE: a table of 4 members lacks the columns k_3, warps_4"
    )
    # A table of three works as well, with or without isolated times.
    three = source.loc[:, [not column.endswith("_4") for column in source]]
    three = three[three["carveout_pct"] == -1].drop(columns=["isolated_time_4_us"])
    three.drop(columns=["isolated_time_1_us"]).to_csv(path, index=False)
    table, members = read_members(path)
    assert (len(table), members) == (300, 3)
    three.assign(concurrent_time_us=np.nan).to_csv(path, index=False)
    assert _refusal(read_members, path) == (
        "concurrent_time_us must be a finite number above 0 [us], not empty (FILE, row 2; 299 more)"
    )
