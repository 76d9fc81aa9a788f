"""Measuring many rows: resumable, in time, safe to interrupt; plans and arrangements."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from perfmodel.live import campaign, driver
from perfmodel.live.arrangement import Setting, Timing, mixed, waiting
from perfmodel.live.campaign import GpuLost, measure
from perfmodel.live.plans import (
    DRAWN, DRAWN_FLOP, draw_gemms, draw_members, equal_jobs, member_jobs, waiting_jobs)
from perfmodel.measurements.table import (
    kernel_rows, read_measurements, read_members, read_waiting)

SMALL, LARGE = (64, 64, 64, 1), (512, 512, 512, 1)
KERNELS = [(64, 64, 64, 4, 4, 1), (128, 128, 64, 3, 8, 4)]


class Scripted:
    """A runner whose times are made up: microseconds count the launches."""

    def __init__(self, fail=lambda number: None, wrong=()):
        self.timed = 0
        self.checked = []
        self._fail = fail
        self._wrong = wrong

    def gpu(self):
        return {"gpu": "NVIDIA H200", "launched_by": "graph"}

    def check(self, gemm, kernel, setting):
        self.checked.append((gemm, kernel))
        return "wrong result: relative error 1" if kernel in self._wrong else ""

    def time(self, branches, setting):
        self.timed += 1
        error = self._fail(self.timed)
        if error is not None:
            raise error
        return Timing(1e-6 * sum(map(len, branches)), 0.01)

    def state(self):
        return {"clock_mhz": 1800}


def _jobs(gemms=(SMALL, LARGE), degrees=(1, 4), library=None):
    return list(equal_jobs("h200", list(gemms), KERNELS, degrees, [3], Setting(), library))


def test_rows_of_equal_gemms(tmp_path):
    path = tmp_path / "times.csv"
    count = measure(Scripted(), _jobs(library="cublas"), path)
    assert count == {"measured": 12}
    table = read_measurements(path)
    # 3 rounds of `degree` launches over 3 rounds
    assert (table["time_us"] == table["concurrency_degree"]).all()
    assert len(kernel_rows(table)) == 8


def test_each_kernel_is_checked_once_on_each_gemm(tmp_path):
    runner = Scripted()
    measure(runner, _jobs(library="cublas"), tmp_path / "times.csv")
    assert sorted(runner.checked) == sorted(itertools.product((SMALL, LARGE), KERNELS))


def test_wrong_results_are_not_timed(tmp_path):
    runner = Scripted(wrong=KERNELS[:1])
    count = measure(runner, _jobs(), tmp_path / "times.csv")
    assert count == {"measured": 4, "wrong result: relative error 1": 4}
    assert runner.timed == 4


def test_an_interrupted_run_goes_on(tmp_path):
    path = tmp_path / "times.csv.gz"

    def interrupt(number):
        return KeyboardInterrupt() if number == 4 else None

    with pytest.raises(KeyboardInterrupt):
        measure(Scripted(interrupt), _jobs(), path)
    assert len(read_measurements(path)) == 3
    count = measure(Scripted(), _jobs(), path)
    assert count == {"kept": 3, "measured": 5}
    again = measure(Scripted(), _jobs(), path)
    assert again == {"kept": 8}
    assert len(read_measurements(path)) == 8


@pytest.mark.parametrize(("other", "message"), [
    ({"gpu": "NVIDIA A100", "launched_by": "graph"}, "gpu of its rows is NVIDIA H200, here it is"),
    ({"gpu": "NVIDIA H200", "launched_by": "streams"}, "launched_by of its rows is graph, here"),
])
def test_another_gpu_or_way_to_launch_is_another_table(tmp_path, monkeypatch, other, message):
    path = tmp_path / "times.csv"
    measure(Scripted(), _jobs(degrees=[1]), path)
    content = path.read_bytes()
    monkeypatch.setattr(Scripted, "gpu", lambda self: other)
    with pytest.raises(ValueError, match=message):
        measure(Scripted(), _jobs(), path)
    assert path.read_bytes() == content


def test_a_row_that_fails_is_left_out(tmp_path):
    def fail(number):
        return RuntimeError("out of memory\nmore") if number == 2 else None

    count = measure(Scripted(fail), _jobs(), tmp_path / "times.csv")
    assert count == {"measured": 7, "RuntimeError: out of memory": 1}


def test_an_error_without_a_text_is_named(tmp_path):
    count = measure(
        Scripted(lambda number: AssertionError() if number == 2 else None), _jobs(),
        tmp_path / "times.csv")
    assert count == {"measured": 7, "AssertionError": 1}


def test_a_lost_gpu_ends_it_and_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "_FAILURES", 3)
    path = tmp_path / "times.csv"

    def fail(number):
        return RuntimeError("CUDA error: illegal address") if number > 2 else None

    with pytest.raises(GpuLost, match="3 kernels failed one after the other, the last: RuntimeError"):
        measure(Scripted(fail), _jobs(), path)
    assert len(read_measurements(path)) == 2


def test_operands_that_do_not_fit_are_no_lost_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "_FAILURES", 3)

    def fail(number):
        return MemoryError("CUDA out of memory") if number < 6 else None

    count = measure(Scripted(fail), _jobs(), tmp_path / "times.csv")
    assert count == {"measured": 3, "MemoryError: CUDA out of memory": 5}


def test_a_kernel_that_fails_in_many_rows_is_no_lost_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "_FAILURES", 3)

    def fail(number):
        return RuntimeError("no such dtype") if number <= 8 else None

    jobs = _jobs(degrees=[1, 2, 4, 8])
    count = measure(Scripted(fail), jobs, tmp_path / "times.csv")
    # Two kernels at four degrees each
    assert count == {"measured": 8, "RuntimeError: no such dtype": 8}


def test_when_time_is_up_the_gemm_begun_is_finished(tmp_path, monkeypatch):
    clock = itertools.count(step=20.0)
    monkeypatch.setattr(campaign.time, "monotonic", lambda: next(clock))
    path = tmp_path / "times.csv"
    count = measure(Scripted(), _jobs(), path, minutes=1.0)
    assert count == {"measured": 4, "left": 4}
    assert set(read_measurements(path)["m"]) == {64}


def test_nothing_measured_writes_nothing(tmp_path):
    path = tmp_path / "times.csv"
    measure(Scripted(wrong=KERNELS), _jobs(), path)
    assert not path.exists()


def test_gemms_that_wait(tmp_path):
    path = tmp_path / "waiting.csv"
    jobs = list(waiting_jobs("h200", [SMALL], KERNELS, [4, 6], [1, 3], Setting(), "cublas"))
    # 4 waiting: degrees 1, 2, 4; 6 waiting: 1, 2, 6; two rounds; two kernels and the library
    assert measure(Scripted(), jobs, path) == {"measured": (3 + 3) * 2 * 3}
    table = read_waiting(path)
    assert (table["time_of_all_us"] == table["waiting"]).all()
    assert set(table["library"]) == {"triton", "cublas"}


def test_each_waiting_gemm_is_launched_once_a_round():
    for count, degree, rounds in ((4, 2, 1), (12, 4, 3), (16, 16, 2)):
        branches = waiting(SMALL, None, count, degree, rounds)
        numbers = sorted(launch.operands for branch in branches for launch in branch)
        assert numbers == sorted(list(range(count)) * rounds)
        assert {len(branch) for branch in branches} == {count // degree * rounds}


def test_different_gemms(tmp_path):
    path = tmp_path / "members.csv"
    members = [(SMALL, KERNELS[0]), (LARGE, KERNELS[1]), (SMALL, KERNELS[1])]
    count = measure(Scripted(), list(member_jobs("h200", [members], [-1, 100], Setting())), path)
    assert count == {"measured": 2}
    table, size = read_members(path)
    assert size == 3
    assert (table["concurrent_time_us"] == 3).all() and (table["isolated_time_2_us"] == 1).all()
    assert [branch[0].operands for branch in mixed(members)] == [0, 1, 2]
    other = list(member_jobs("h200", [members], [-1], Setting(transposed_b=True)))
    assert measure(Scripted(), other, path) == {"measured": 1}
    assert read_members(path)[0]["trans_b"].tolist() == ["N", "N", "T"]
    fewer = list(member_jobs("h200", [members[:2]], [-1], Setting()))
    with pytest.raises(ValueError, match="another table: it has the columns isolated_time_3_us;"):
        measure(Scripted(), fewer, path)
    assert len(read_members(path)[0]) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells what a process has loaded")
def test_the_drivers_library_is_the_one_loaded(monkeypatch):
    # Nothing is found by this name, but it is in the process.
    loaded = Path(np.random.mtrand.__file__)
    monkeypatch.setitem(driver._LIBRARIES, "loaded", loaded.name.split(".")[0])
    assert driver._library("loaded")._name == str(loaded.resolve())


def test_drawn_gemms_are_fresh_and_in_range():
    known = draw_gemms(20, seed=3)
    drawn = draw_gemms(300, seed=3, known=known)
    assert len(set(drawn)) == 300 and not set(drawn) & set(known)
    sizes = np.array(drawn)
    for column, (low, high) in enumerate(DRAWN.values()):
        assert low <= sizes[:, column].min() and sizes[:, column].max() <= high
        # log-uniform: a third of them below the cube root of the way
        assert (sizes[:, column] < low ** (1 / 2) * high ** (1 / 2)).mean() > 0.3
    flop = 2.0 * sizes[:, :3].prod(axis=1)
    assert DRAWN_FLOP[0] <= flop.min() and flop.max() <= DRAWN_FLOP[1]
    assert draw_gemms(5, seed=1) == draw_gemms(5, seed=1) != draw_gemms(5, seed=2)


def test_drawn_sets_have_different_gemms_and_allowed_kernels():
    gemms = draw_gemms(6, seed=1)
    sets = draw_members(gemms, [[KERNELS[i % 2]] for i in range(6)], 40, 4, seed=1)
    assert len(sets) == 40
    for members in sets:
        assert len({gemm for gemm, _ in members}) == 4
        assert all(kernel == KERNELS[gemms.index(gemm) % 2] for gemm, kernel in members)
