"""What to measure: jobs, each a row of a table with the arrangements that its times are of."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from perfmodel.checks import refusal
from perfmodel.gpu.kernels import KERNEL
from perfmodel.live.arrangement import Setting, equal, mixed, waiting

#: Name under which the vendor's library stands in a table, by backend.
LIBRARIES = {"cuda": "cublas", "hip": "hipblaslt"}
OWN = "triton"

#: dtypes whose matrix instructions on Hopper read B only along k: stored so, nothing is shuffled.
STORED_ALONG_K = ("tf32", "fp8", "int8")

#: Elements of a matrix that the kernel's 32-bit offsets reach, and batch entries of its grid.
OFFSETS = 2**31 - 1
GRID_BATCH = 2**16 - 1

#: Branches that run at the same time: torch has so many streams, then it gives the first again.
STREAMS = 32

#: Sizes that `draw_gemms` draws from [elements], their step, and their work [FLOP].
DRAWN = {"m": (64, 4800), "n": (64, 8192), "k": (128, 8192)}
DRAWN_STEP = 32
DRAWN_FLOP = (1e7, 4e10)


@dataclass(frozen=True)
class Job:
    """A row to measure.

    Attributes
    ----------
    row : dict
        Columns that name it.
    timed : dict of column to (arrangement, divisor)
        The arrangement whose time goes into the column, and what it is divided by.
    setting : Setting
    """

    row: dict
    timed: dict
    setting: Setting

    @property
    def problem(self):
        """The GEMMs that run, a frozenset."""
        return frozenset(gemm for gemm, _ in self.launched)

    @property
    def launched(self):
        """The (gemm, kernel) that run, a set."""
        arrangements = [arrangement for arrangement, _ in self.timed.values()]
        return {(launch.gemm, launch.kernel)
                for arrangement in arrangements for branch in arrangement for launch in branch}


def refuse_unreachable(gemms):
    """Raise `ValueError` for the first GEMM that the kernel cannot reach all of.

    Parameters
    ----------
    gemms : list of tuple
        m, n, k, batch.
    """
    for m, n, k, batch in gemms:
        where = f"GEMM {m}x{n}x{k}x{batch}"
        if max(m * k, k * n, m * n) > OFFSETS:
            raise refusal("elements of a matrix", f"at most {OFFSETS}",
                          max(m * k, k * n, m * n), where)
        if batch > GRID_BATCH:
            raise refusal("batch", f"at most {GRID_BATCH}", batch, where)


def equal_jobs(device, gemms, kernels, degrees, rounds, setting, library=None):
    """Jobs of equal GEMMs together: a measurement table.

    Parameters
    ----------
    device : str
        Name of the device, for the table.
    gemms : list of tuple
        m, n, k, batch.
    kernels : list of tuple
    degrees, rounds : sequence of int
        Concurrency degrees, and launches on each branch.
    setting : Setting
    library : str, optional
        Measure the vendor's library too, under this name.

    Yields
    ------
    Job
        GEMM by GEMM, so that what was measured when time is up is complete for most GEMMs.
    """
    for gemm in gemms:
        for kernel, degree, count in product(_with(library, kernels), degrees, rounds):
            row = _problem(device, gemm, kernel, setting, library)
            row |= {"concurrency_degree": degree, "rounds": count,
                    "cache": "cold" if setting.cold else "warm"}
            yield Job(row, {"time_us": (equal(gemm, kernel, degree, count), count)}, setting)


def repeated_jobs(table, count, seed):
    """Jobs that measure again random rows of a measurement table.

    Parameters
    ----------
    table : DataFrame
        From `perfmodel.measurements.table.read_measurements`.
    count : int
        Rows; all, if the table has fewer.
    seed : int

    Returns
    -------
    list of Job
        GEMM by GEMM.
    """
    rows = table.sample(min(count, len(table)), random_state=seed)
    rows = rows.sort_values(["dtype", "m", "n", "k", "batch"], kind="stable")
    jobs = []
    for row in rows.to_dict("records"):
        tile = [row[name] for name in KERNEL]
        kernel = None if pd.isna(tile[0]) else tuple(map(int, tile))
        setting = Setting(row["dtype"], row.get("trans_b", "N") == "T",
                          row.get("cache", "warm") == "cold")
        gemm = tuple(int(row[name]) for name in ("m", "n", "k", "batch"))
        jobs += equal_jobs(
            row["device"], [gemm], [kernel] if kernel else [],
            [int(row["concurrency_degree"])], [int(row["rounds"])], setting,
            None if kernel else row["library"])
    return jobs


def waiting_jobs(device, gemms, kernels, counts, rounds, setting, library=None):
    """Jobs of equal GEMMs that wait: a waiting table.

    Parameters
    ----------
    device, gemms, kernels, rounds, setting, library
        As in `equal_jobs`.
    counts : sequence of int
        GEMMs waiting; each is run at the degrees of `dividing_degrees`.
    """
    for gemm in gemms:
        for kernel, count, repeats in product(_with(library, kernels), counts, rounds):
            for degree in dividing_degrees(count):
                row = _problem(device, gemm, kernel, setting, library)
                row |= {"waiting": count, "concurrency_degree": degree, "rounds": repeats}
                arrangement = waiting(gemm, kernel, count, degree, repeats)
                yield Job(row, {"time_of_all_us": (arrangement, repeats)}, setting)


def member_jobs(device, sets, carveouts, setting):
    """Jobs of different GEMMs together: a table of members.

    Parameters
    ----------
    device, setting
        As in `equal_jobs`.
    sets : list of list of (gemm, kernel)
    carveouts : sequence of int
        Shared-memory carve-outs [per cent], -1 for left to the driver.
    """
    for members, carveout in product(sets, carveouts):
        row = {"device": device, "library": OWN, "dtype": setting.dtype,
               "trans_b": "T" if setting.transposed_b else "N"}
        for i, (gemm, kernel) in enumerate(members, 1):
            row |= {f"{name}_{i}": value for name, value in zip("mnk", gemm)}
            row |= {f"{name}_{i}": value for name, value in zip(KERNEL, kernel)}
        row |= {"carveout_pct": carveout}
        timed = {f"isolated_time_{i}_us": (mixed([member]), 1)
                 for i, member in enumerate(members, 1)}
        timed |= {"concurrent_time_us": (mixed(members), 1),
                  "concurrent_time_reversed_us": (mixed(members)[::-1], 1)}
        yield Job(row, timed, Setting(setting.dtype, setting.transposed_b, carveout_pct=carveout))


def dividing_degrees(count):
    """1, 2, 4 and so on, as far as they divide a number of waiting GEMMs, and all at once.

    Examples
    --------
    >>> dividing_degrees(12), dividing_degrees(16)
    ([1, 2, 4, 12], [1, 2, 4, 8, 16])
    """
    powers = (2**i for i in range(count.bit_length()))
    return sorted({count, *(degree for degree in powers if count % degree == 0)})


def draw_gemms(count, seed, known=()):
    """Different random GEMMs, log-uniform within `DRAWN` and `DRAWN_FLOP`.

    Parameters
    ----------
    count : int
    seed : int
    known : collection of tuple, optional
        m, n, k, batch of GEMMs not to draw: those that a fit has seen.

    Returns
    -------
    list of tuple
        m, n, k, batch.

    Examples
    --------
    >>> len(set(draw_gemms(50, seed=1)))
    50
    """
    random = np.random.default_rng(seed)
    low, high = np.log(np.array(list(DRAWN.values())) / DRAWN_STEP).T
    drawn, known = {}, set(known)
    while len(drawn) < count:
        m, n, k = (int(x) * DRAWN_STEP for x in np.exp(random.uniform(low, high)).round())
        gemm = (m, n, k, 1)
        if DRAWN_FLOP[0] <= 2 * m * n * k <= DRAWN_FLOP[1] and gemm not in known:
            drawn[gemm] = None
    return list(drawn)


def draw_members(gemms, candidates, count, size, seed):
    """Random sets of different GEMMs, each with one of its candidate kernels.

    Parameters
    ----------
    gemms : list of tuple
    candidates : list of list of tuple
        Kernels of each GEMM to choose from.
    count : int
        Sets.
    size : int
        Members of a set, at most as many as there are GEMMs.
    seed : int

    Returns
    -------
    list of list of (gemm, kernel)
    """
    random = np.random.default_rng(seed)
    sets = []
    for _ in range(count):
        chosen = random.choice(len(gemms), size, replace=False)
        sets.append([
            (gemms[i], candidates[i][random.integers(len(candidates[i]))]) for i in chosen])
    return sets


def _with(library, kernels):
    return [*kernels, None] if library else kernels


def _problem(device, gemm, kernel, setting, library):
    m, n, k, batch = gemm
    row = {
        "device": device, "library": OWN if kernel else library, "dtype": setting.dtype,
        "trans_b": "T" if setting.transposed_b else "N", "m": m, "n": n, "k": k, "batch": batch}
    return row | dict(zip(KERNEL, kernel or (None,) * len(KERNEL)))
