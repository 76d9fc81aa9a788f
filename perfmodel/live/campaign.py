"""Measuring many jobs into a table: resumable, within a time budget, safe to interrupt."""

import time
from collections import Counter
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from perfmodel.files import refuse_unwritable, write_table_atomic
from perfmodel.live.one_line import one_line
from perfmodel.measurements.csv_text import read_raw
from perfmodel.units import US

#: The table is written at least this often [s].
_WRITE_SECONDS = 20.0

#: So many kernels that fail one after the other mean that the GPU is lost, not that one is bad.
_FAILURES = 25


#: What `runner.gpu` tells that must be the same for all rows of a table; columns of it.
_SAME = ("gpu", "launched_by")


class GpuLost(OSError):
    """Everything fails: the GPU or its context is lost. What was measured is written."""


def measure(runner, jobs, path, minutes=None, progress=False):
    """Measure jobs into a table; those that the table has already are left as they are.

    Each kernel is checked once on each GEMM before it is timed. The table is written whole now and
    then, at the end, and when interrupted.

    Parameters
    ----------
    runner : runner.GpuRunner or recorded.Recorded
    jobs : iterable of plans.Job
    path : str or Path
        Table to write, CSV, gzipped if named .gz.
    minutes : float, optional
        No GEMM (or set of different ones) is begun later than this; the one begun is finished.
    progress : bool
        Whether to show a bar on stderr.

    Returns
    -------
    Counter of str
        Rows: ``measured`` now, ``kept`` from before, ``left`` for want of time, and those that
        failed by reason.

    Raises
    ------
    GpuLost
    ValueError
        If `path` holds another table, or rows of another GPU or launched otherwise.
    OSError
        If it cannot be written.
    """
    refuse_unwritable(path)
    refuse_other_gpu(runner, path)
    identity = _identity(runner)
    begin = time.monotonic()
    jobs = list(jobs)
    table = _Table(path, jobs)
    count = Counter()
    wrong = {}
    failing = set()
    try:
        for at, job in enumerate(tqdm(jobs, disable=not progress, unit="row")):
            late = minutes is not None and time.monotonic() - begin > minutes * 60
            if late and (at == 0 or jobs[at - 1].problem != job.problem):
                count["left"] += sum(not table.has(other) for other in jobs[at:])
                break
            if table.has(job):
                count["kept"] += 1
                continue
            try:
                reason = _wrong(runner, job, wrong)
                times = {} if reason else _times(runner, job)
            except Exception as error:  # of torch, Triton or the driver; ours are refused before
                reason = one_line(error)
                # Operands that do not fit say nothing of the GPU.
                if not isinstance(error, MemoryError):
                    failing.add(frozenset(job.launched))
                if len(failing) >= _FAILURES:
                    raise GpuLost(
                        f"{len(failing)} kernels failed one after the other, the last: {reason}"
                    ) from error
            if reason:
                count[reason] += 1
                continue
            failing.clear()
            table.add(job, times | runner.state() | identity)
            count["measured"] += 1
    finally:
        table.write()
    return count


def refuse_other_gpu(runner, path):
    """Raise `ValueError` if a table has rows of another GPU than this, or launched otherwise.

    Parameters
    ----------
    runner : runner.GpuRunner or recorded.Recorded
    path : str or Path
        Table; need not exist, and older ones do not tell.
    """
    before = read_raw(path) if Path(path).exists() else {}
    for name, ours in _identity(runner).items():
        others = {*before[name].dropna()} - {ours} if name in before else ()
        if others:
            raise ValueError(f"{path}: {name} of its rows is {min(map(str, others))}, here it is"
                             f" {ours}: give a new name")


def _identity(runner):
    known = runner.gpu()
    return {name: known[name] for name in _SAME}


class _Table:
    """Rows measured before and now, by what names them."""

    def __init__(self, path, jobs):
        self._path = Path(path)
        self._names = list(jobs[0].row) if jobs else []
        self._before = read_raw(path) if self._path.exists() else None
        self._rows = []
        self._known = set()
        self._written = time.monotonic()
        if self._before is None:
            return
        timed = list(jobs[0].timed) if jobs else []
        lacking = [name for name in (*self._names, *timed) if name not in self._before]
        if lacking:
            raise ValueError(
                f"{path}: another table: it lacks the columns {', '.join(lacking)};"
                " give a new name")
        # A table of more members has all columns of one of fewer.
        more = [name for name in self._before if name.endswith("_us") and name not in timed]
        if jobs and more:
            raise ValueError(
                f"{path}: another table: it has the columns {', '.join(more)}; give a new name")
        self._known = {_key(values) for values in self._before[self._names].to_numpy(object)}

    def has(self, job):
        return _key(job.row.values()) in self._known

    def add(self, job, measured):
        self._rows.append(job.row | measured)
        self._known.add(_key(job.row.values()))
        if time.monotonic() - self._written > _WRITE_SECONDS:
            self.write()

    def write(self):
        if self._rows:
            before = [] if self._before is None else [self._before]
            whole = pd.concat([*before, pd.DataFrame(self._rows)], ignore_index=True)
            # Beside the empty cells of a library's tile whole numbers became floats.
            counts = {name: "Int64" for name in self._names
                      if pd.api.types.is_numeric_dtype(whole[name].infer_objects())}
            write_table_atomic(self._path, whole.astype(counts))
        self._written = time.monotonic()


def _wrong(runner, job, known):
    """Why a kernel of a job gives a wrong result, or an empty text; each is asked once."""
    for gemm, kernel in sorted(job.launched, key=str):
        if kernel is None:
            continue
        key = (gemm, kernel, job.setting.dtype, job.setting.transposed_b)
        if key not in known:
            known[key] = runner.check(gemm, kernel, job.setting)
        if known[key]:
            return known[key]
    return ""


def _times(runner, job):
    """Times [us] of a job by column, and the largest spread among them [per cent]."""
    times, spreads = {}, []
    for column, (arrangement, divisor) in job.timed.items():
        timing = runner.time(arrangement, job.setting)
        times[column] = round(timing.seconds / divisor / US, 4)
        spreads.append(timing.spread)
    return times | {"time_spread_pct": round(100 * max(spreads), 2)}


def _key(values):
    return tuple("" if value is None or value != value else str(_plain(value)) for value in values)


def _plain(value):
    return int(value) if isinstance(value, float) and value.is_integer() else value
