"""What a time is made of: the part of it that each cost accounts for."""

from dataclasses import replace

import numpy as np

from perfmodel.gpu.timing import ROUNDS, modelled_time

#: Terms of a breakdown, and the fields of `Machine` each is the cost of, with the power by which
#: the cost goes: a rate is a cost to the power of -1.
TERMS = {
    "matrix_pipe": {"matrix_flop_per_clk": -1},
    "operand_feed": {"port_bytes_per_clk": -1, "lds_bytes_per_clk": -1},
    "latency": {"load_latency_clk": 1},
    "hbm": {"hbm_bytes_per_s": -1},
    "split_k": {"atomic_bytes_per_clk": -1},
    "store": {"store_bytes_per_clk": -1},
    "launch": {
        "launch_gap_s": 1, "branch_start_s": 1, "graph_start_s": 1, "graph_interval_s": 1,
        "workgroup_start_clk": 1, "wide_start_clk": 1},
    "tail": {},
}

#: Relative step of the differences in `breakdown`.
_STEP = 1e-5


def breakdown(machine, gemms, kernels, occupancy, degree, rounds=ROUNDS, cold=False):
    r"""The concurrent time, split into `TERMS` that sum to it [s].

    The time is homogeneous of degree one in its costs, so by Euler's theorem

    .. math:: T = \sum_i x_i \frac{\partial T}{\partial x_i}

    and each term is what its cost contributes: a cost hidden behind others has a term near zero.
    The tail of the last wave comes first: it is what the time would lose if the partial wave after
    a full one took no more than its share of a full one.

    Parameters
    ----------
    machine, gemms, kernels, occupancy, degree, rounds, cold
        As in `concurrent_time`.

    Returns
    -------
    dict of term name to ndarray
    """
    inputs = (gemms, kernels, occupancy, degree, degree, rounds, cold)
    total = modelled_time(machine, *inputs, tail=True)
    even = np.minimum(modelled_time(machine, *inputs, tail=False), total)
    terms = {}
    for term, costs in TERMS.items():
        up, down = (modelled_time(_scaled(machine, costs, 1 + s), *inputs, tail=False)
                    for s in (_STEP, -_STEP))
        terms[term] = (up - down) / (2 * _STEP)
    # The differences are exact to about 1e-9; scaling makes the sum exact.
    scale = even / sum(terms.values())
    return {name: term * scale for name, term in terms.items()} | {"tail": total - even}


def _scaled(machine, costs, factor):
    return replace(
        machine, **{name: getattr(machine, name) * factor**power for name, power in costs.items()})
