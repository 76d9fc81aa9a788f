"""The main loop of one workgroup: what a step costs, and what its prologue and epilogue add."""

import numpy as np

from perfmodel.equations.smooth import smooth_max

#: Exponent of the smooth maximum over the costs of one step of a workgroup among others: nearly the
#: largest alone. 6 to 10 fit alike.
STEP_EXPONENT = 8


def feed_cycles(operand_bytes, row_requests, straddled_lines, request_bytes, straddle_bytes,
                port_bytes_per_clk):
    r"""Cycles in which a compute unit's port to L2 delivers one step's operands [clk].

    .. math:: y' / p, \qquad y' = y + \beta_q q + \beta_x x

    A request for a row and a line asked for twice cost port time as if they were bytes.

    Parameters
    ----------
    operand_bytes, row_requests, straddled_lines : array_like
        Of one step; `tiles.step_bytes`, `tiles.row_requests`, `tiles.straddled_lines`.
    request_bytes, straddle_bytes : array_like
        Bytes that one of them is worth [B].
    port_bytes_per_clk : array_like
        [B/clk]

    Examples
    --------
    >>> feed_cycles(32768.0, 128.0, 0.0, 32.0, 40.0, 64.0)
    576.0
    """
    worth = operand_bytes + request_bytes * row_requests + straddle_bytes * straddled_lines
    return worth / port_bytes_per_clk


def matrix_cycles(flop, flop_per_clk, serialised, serialised_share):
    r"""Cycles of the matrix pipe for one step [clk].

    .. math:: \frac{f}{\mu} (1 + \sigma\,[\mathrm{serialised}])

    Parameters
    ----------
    flop : array_like
        `tiles.step_flop` [FLOP].
    flop_per_clk : array_like
        Rate that is sustained [FLOP/clk].
    serialised : array_like of bool
        Whether the compiler waits after every matrix instruction instead of once a step.
    serialised_share : array_like
        What that adds.

    Examples
    --------
    >>> float(matrix_cycles(2097152.0, 4096.0, False, 0.6))
    512.0
    """
    return flop / flop_per_clk * np.where(serialised, 1.0 + serialised_share, 1.0)


def unit_cycles(matrix, lds):
    r"""Cycles of one step in which the matrix unit is at work or being fed from LDS [clk].

    .. math:: \mathrm{unit} = V_8(\mathrm{matrix}, \mathrm{lds})

    Examples
    --------
    >>> round(float(unit_cycles(512.0, 512.0)), 1)
    558.3
    """
    return smooth_max(STEP_EXPONENT, matrix, lds)


def core_cycles(unit, feed):
    r"""Cycles of one step in which a workgroup keeps its compute unit from others [clk].

    .. math:: \mathrm{core} = V_8(\mathrm{unit}, \mathrm{feed})

    Examples
    --------
    >>> float(core_cycles(512.0, 0.0))
    512.0
    """
    return smooth_max(STEP_EXPONENT, unit, feed)


def step_cycles(residents, unit, feed, latency, stages, overlap):
    r"""Cycles of one step with several residents in lock-step [clk].

    .. math:: V_q\left(r\,\mathrm{unit},\; r\,\mathrm{feed},\;
              \frac{\lambda + r\,\mathrm{feed}}{s - 1}\right), \qquad q = \omega (s - 1)^2

    In lock-step all residents load at the same time and multiply at the same time. Loads are
    issued s - 1 steps ahead, so a step can be no shorter than that share of the time from request
    to the last byte; and the deeper the pipeline, the better loading and multiplying overlap.

    Parameters
    ----------
    residents : array_like
        Workgroups on the compute unit.
    unit, feed, latency : array_like
        `unit_cycles`, `feed_cycles` and the latency of a load [clk].
    stages : array_like of int
        At least 2.
    overlap : array_like
        Exponent of a pipeline of two stages.

    Examples
    --------
    >>> [round(float(step_cycles(1, 250.0, 250.0, 500.0, s, 3.0))) for s in (2, 3, 4)]
    [768, 375, 260]
    """
    ahead = np.asarray(stages, float) - 1.0
    exposed = (latency + residents * feed) / ahead
    return smooth_max(overlap * ahead**2, residents * unit, residents * feed, exposed)


def store_cycles(elements, bytes_per_element, bytes_per_clk):
    r"""Cycles to write a tile of C, or to add it with atomics where k is split [clk].

    .. math:: u e / w

    Parameters
    ----------
    elements, bytes_per_element : array_like
    bytes_per_clk : array_like
        Of plain stores, or of atomic additions [B/clk].

    Examples
    --------
    >>> store_cycles(8192.0, 2.0, 32.0)
    512.0
    """
    return elements * bytes_per_element / bytes_per_clk
