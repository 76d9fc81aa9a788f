"""A device as the equations see it: its facts and fitted parameters joined, for one dtype."""

from dataclasses import dataclass

import numpy as np

from perfmodel.gpu.parameters import values_of


@dataclass(frozen=True)
class Machine:
    """What the time of a kernel depends on, besides the kernel. Fields may be arrays (what-if).

    Attributes
    ----------
    compute_units : int
    clock_hz : float
        Peak; cycles are of this clock.
    matrix_flop_per_clk : float
        Sustained, of one compute unit [FLOP/clk].
    port_bytes_per_clk, lds_bytes_per_clk, store_bytes_per_clk, atomic_bytes_per_clk : float
        Of one compute unit [B/clk].
    l2_capacity_bytes : float
    hbm_bytes_per_s : float
    load_latency_clk, workgroup_start_clk, wide_start_clk : float
        [clk]
    launch_gap_s, branch_start_s, graph_start_s, graph_interval_s, member_start_s : float
        [s]
    miss_latency_share, loaded_latency_share, serialised_share, pipeline_fill_share : float
    overlap_exponent : float
    row_request_bytes, straddled_line_bytes : float
        [B]
    shuffle_exponent, tail_share, fullest_share, swept_start_share, cold_start_share : float
    exposed_start_share, stagger_share, clock_drop_share, member_clock_drop_share : float
    clock_drop_flop : float
        [FLOP]
    """

    compute_units: float
    clock_hz: float
    matrix_flop_per_clk: float
    port_bytes_per_clk: float
    lds_bytes_per_clk: float
    store_bytes_per_clk: float
    atomic_bytes_per_clk: float
    l2_capacity_bytes: float
    hbm_bytes_per_s: float
    load_latency_clk: float
    workgroup_start_clk: float
    wide_start_clk: float
    launch_gap_s: float
    branch_start_s: float
    miss_latency_share: float
    loaded_latency_share: float
    serialised_share: float
    overlap_exponent: float
    pipeline_fill_share: float
    row_request_bytes: float
    straddled_line_bytes: float
    shuffle_exponent: float
    tail_share: float
    fullest_share: float
    swept_start_share: float
    cold_start_share: float
    exposed_start_share: float
    stagger_share: float
    clock_drop_share: float
    clock_drop_flop: float
    graph_start_s: float
    graph_interval_s: float
    member_start_s: float
    member_clock_drop_share: float


def machine_of(device, dtype, values=None):
    """The machine that a device is for one dtype.

    Parameters
    ----------
    device : Gpu
    dtype : str
    values : mapping of parameter name to float, optional
        In place of the device's own fitted ones.

    Returns
    -------
    Machine

    Raises
    ------
    ValueError
        If the device lacks the dtype, a fact that is needed, or fitted parameters.
    """
    values = dict(values_of(device) if values is None else values)
    efficiency = values.pop("matrix_efficiency")
    capacity = values.pop("l2_capacity_share")
    return Machine(
        compute_units=device.compute_units,
        clock_hz=device.clock_hz,
        matrix_flop_per_clk=efficiency * device.matrix_rate(dtype),
        port_bytes_per_clk=device.l2_bytes_per_clock_per_compute_unit,
        l2_capacity_bytes=capacity * device.l2_bytes,
        hbm_bytes_per_s=device.hbm_bytes_per_s,
        **{name: np.float64(value) for name, value in values.items()},
    )
