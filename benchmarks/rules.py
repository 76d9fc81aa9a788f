"""Peers that are a rule: plain roofline, Tensile's granularity, rocBLAS' metrics.

Equal GEMMs together are given to them as a batch of that many.
"""

import numpy as np

from perfmodel.equations.baselines import (
    granularity_time,
    rate_per_used_unit,
    tensile_granularity,
)
from perfmodel.equations.roofline import gemm_bytes, roofline_time
from perfmodel.equations.tiles import workgroups
from perfmodel.problems import BYTES_PER_ELEMENT, BYTES_PER_OUTPUT
from perfmodel.units import US


def peak(device, dtype):
    """Datasheet rate of the matrix pipes of the whole device [FLOP/s]."""
    return device.matrix_rate(dtype) * device.compute_units * device.clock_hz


def flop(table):
    """Work of the row's GEMMs together, ndarray [FLOP]."""
    sizes = [table[name].to_numpy(float) for name in ("m", "n", "k", "batch")]
    return 2.0 * np.prod(sizes, axis=0) * table["concurrency_degree"].to_numpy()


def roofline_us(table, device, dtype="fp16"):
    """The slower of arithmetic at the datasheet's rate and of A, B, C once through memory [us]."""
    m, n, k, batch, degree = (
        table[name].to_numpy(float) for name in ("m", "n", "k", "batch", "concurrency_degree"))
    traffic = gemm_bytes(
        m, n, k, batch * degree, BYTES_PER_ELEMENT[dtype], BYTES_PER_OUTPUT[dtype])
    return roofline_time(flop(table), traffic, peak(device, dtype), device.hbm_bytes_per_s) / US


def granularity_us(table, device):
    """Time at the datasheet's rate times Tensile's granularity [us].

    Tensile has the rate of each kernel from measurements; here it is one for all, to be scaled.
    """
    share = tensile_granularity(
        *(table[name].to_numpy() for name in ("m", "n")),
        (table["batch"] * table["concurrency_degree"]).to_numpy(),
        *(table[name].to_numpy() for name in ("macro_tile_m", "macro_tile_n", "split_k", "warps")),
        device.compute_units, device.simds_per_compute_unit)
    return granularity_time(flop(table), peak(device, "fp16"), share) / US


def per_unit_score(table, device):
    """Less is better by rocBLAS' CUEfficiency, judged by the measured times alone."""
    launch = workgroups(*(table[name].to_numpy() for name in (
        "m", "n", "batch", "macro_tile_m", "macro_tile_n", "split_k")))
    alone = table.assign(concurrency_degree=1)
    return -rate_per_used_unit(
        flop(alone), table["isolated_us"].to_numpy() * US, launch, device.compute_units)
