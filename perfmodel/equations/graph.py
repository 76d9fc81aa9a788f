"""What a graph of launches costs beyond the launches themselves.

Work is handed to the chip as a graph of parallel branches. Replays of a graph follow each other
back to back.
"""

import numpy as np

#: The first branch starts at once and the second hardly later: where the start delay begins.
BRANCHES_AT_ONCE = 1.75

#: Queues into which the driver sorts branches; more branches than that share them.
QUEUES = 8


def branch_start_seconds(degree, launches, delay):
    r"""Time from the first to the last of the branches' starts, descriptors in L2 [s].

    .. math:: h = \delta \left(c - 1.75 + [L > 1] \max(c - 8, 0)\right), \qquad h(1) = 0

    Branches start one after the other. Those that share a queue come to their turn later still if
    there is more than one launch on each.

    Parameters
    ----------
    degree : array_like of int
    launches : array_like
        Launches on each branch.
    delay : array_like
        Of one branch [s].

    References
    ----------
    .. [1] data/measurements/h200: 16 branches of small GEMMs take 16 to 17 us longer than one in
       waiting.csv and verify.csv (one launch each), 28 us in gemm_concurrent.csv (three each).

    Examples
    --------
    >>> [float(branch_start_seconds(c, 1, 1.0)) for c in (1, 2, 4, 16)]
    [0.0, 0.25, 2.25, 14.25]
    >>> [float(branch_start_seconds(c, 3, 1.0)) for c in (1, 2, 4, 16)]
    [0.0, 0.25, 2.25, 22.25]
    """
    degree = np.asarray(degree, float)
    late = np.maximum(degree - BRANCHES_AT_ONCE, 0.0)
    queued = np.maximum(degree - QUEUES, 0.0) * (np.asarray(launches) > 1)
    return delay * (late + queued)


def memory_share(miss, swept_share, cold, cold_share):
    r"""How many times as long a start takes when what it reads is no longer in L2.

    .. math:: 1 + \iota\,\mathrm{miss}, \qquad \text{cold: } 1 + \iota_c

    To start a branch the chip reads descriptors, parameters and code. Operands that overflow L2
    sweep part of those out before the next replay; an emptied L2 has none of them.

    Parameters
    ----------
    miss : array_like
        `cache.miss_fraction` of what is replayed.
    swept_share : array_like
    cold : array_like of bool
        Whether L2 is empty at the start.
    cold_share : array_like

    References
    ----------
    .. [1] data/measurements/h200: 16 branches of small GEMMs start in 17 us while their operands
       fit in L2 and in 45 us from 50 MiB on, however long they run (verify.csv); and
       cold.csv, where L2 is emptied before each launch.

    Examples
    --------
    >>> [float(memory_share(0.5, 0.4, cold, 1.2)) for cold in (False, True)]
    [1.2, 2.2]
    """
    return 1.0 + np.where(cold, cold_share, swept_share * miss)


def graph_seconds(launches, first, interval, start):
    r"""Time of one replay of a graph [s].

    .. math:: \max(f + t,\; i + h)

    The first launch of a replay costs more than those that follow on its branch. And replays do not
    follow each other faster than the front end starts one: a graph of little work waits for that.

    Parameters
    ----------
    launches : array_like
        Time of all launches, late branches included, :math:`t` [s].
    first : array_like
        What the first launch costs more, :math:`f` [s].
    interval : array_like
        Least time from replay to replay of a graph of one branch, :math:`i`; 0 if replays do not
        follow each other [s].
    start : array_like
        `branch_start_seconds`, :math:`h` [s].

    References
    ----------
    .. [1] data/measurements/h200/micro: rounds.csv (a first launch costs 1 to 2 us more) and
       graph_start.csv (5.8 us for a branch with the smallest kernel, 6.7 and 8.7 us for 2 and 4).

    Examples
    --------
    >>> [round(float(graph_seconds(t, 1.4e-6, 5.4e-6, 0.0)) * 1e6, 3) for t in (2e-6, 9e-6)]
    [5.4, 10.4]
    """
    return np.maximum(first + launches, interval + start)
