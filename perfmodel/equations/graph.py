"""What a graph of launches costs beyond the launches themselves.

Work is handed to the chip as a graph of parallel branches. Replays of a graph follow each other
back to back.
"""

import numpy as np

#: The first branch starts at once and the second hardly later: where the start delay begins.
BRANCHES_AT_ONCE = 1.5


def branch_start_seconds(degree, delay, exponent):
    r"""Time from the first to the last of the branches' starts [s].

    .. math:: h = \delta (c - 1.5)^p, \qquad h(1) = 0

    Parameters
    ----------
    degree : array_like of int
    delay : array_like
        [s]
    exponent : array_like

    Examples
    --------
    >>> [round(float(branch_start_seconds(c, 0.73e-6, 1.37)) * 1e6, 1) for c in (1, 2, 4, 16)]
    [0.0, 0.3, 2.6, 28.5]
    """
    late = np.maximum(np.asarray(degree, float) - BRANCHES_AT_ONCE, 0.0)
    return delay * late**exponent


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
        Least time from replay to replay of a graph of one branch, :math:`i` [s].
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
