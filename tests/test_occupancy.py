"""Occupancy: the driver's answer for every measured kernel, and what limits it."""

from dataclasses import replace

import numpy as np
import pytest

from perfmodel.device_files import load_device
from perfmodel.devices import replace_fields
from perfmodel.equations.occupancy import LIMITS, limits, occupancy
from perfmodel.gpu.kernels import (
    KERNEL,
    infeasible,
    kernel_space,
    kernels_from,
    occupancy_of,
    rule_kernels,
)
from perfmodel.measurements.table import read_kernels
from perfmodel.resources import data_path

H200 = load_device("h200")
DRIVER = read_kernels(data_path("measurements", "h200", "kernels.csv")).astype("float64")


def kernel(tile_m=128, tile_n=128, depth=64, stages=3, warps=4, split=1, **resources):
    tile = dict(zip(KERNEL, ([x] for x in (tile_m, tile_n, depth, stages, warps, split))))
    return kernels_from(tile | {name: [value] for name, value in resources.items()})


def test_reported_resources_give_the_drivers_answer_for_every_kernel():
    kernels = kernels_from(DRIVER)
    assert len(kernels) == 58
    assert kernels.reported.all()
    assert occupancy_of(H200, kernels)[0].tolist() == DRIVER["workgroups_per_cu"].tolist()


def test_estimated_resources_give_the_drivers_answer_for_every_kernel():
    kernels = kernels_from(DRIVER[list(KERNEL)])
    assert not kernels.reported.any()
    assert occupancy_of(H200, kernels)[0].tolist() == DRIVER["workgroups_per_cu"].tolist()
    assert kernels.lds_bytes.tolist() == DRIVER["lds_bytes"].tolist()
    off = np.abs(kernels.registers_per_thread - DRIVER["registers_per_thread"])
    assert off.mean() < 7


def test_the_measured_kernels_can_all_run():
    assert (infeasible(H200, kernels_from(DRIVER)) == "").all()


def test_what_is_empty_is_estimated_cell_by_cell():
    both = kernels_from({name: [128, 128] for name in KERNEL} | {
        "registers_per_thread": [99.0, np.nan], "lds_bytes": [np.nan, 4096.0]})
    assert both.reported.tolist() == [True, False]
    assert both.registers_per_thread[0] == 99
    assert both.lds_bytes[1] == 4096
    assert both.lds_bytes[0] == 128 * 256 * 128 * 2


@pytest.mark.parametrize(
    ("resources", "workgroups", "limit"),
    [
        # 168 x 32 = 5376 a wavefront: 3 of them in a SIMD's 16,384, 12 in all; 12 / 4 = 3.
        # LDS 16384 + 1024: 13; 64 / 4 = 16 slots.
        (dict(warps=4, registers_per_thread=168, lds_bytes=16384), 3, "registers"),
        # 32 x 64 = 2048: 8 a SIMD, 32 in all, 8 workgroups; 233472 / (98304 + 1024) = 2.35.
        (dict(warps=4, registers_per_thread=64, lds_bytes=98304), 2, "lds"),
        # 32 x 24 = 768: 21 a SIMD, 84 in all, 10 workgroups; LDS 233472 / 2048 = 114; 64 / 8 = 8.
        (dict(warps=8, registers_per_thread=24, lds_bytes=1024), 8, "wavefronts"),
        # 32 x 24 = 768: 84 wavefronts, 84 workgroups; 64 / 1 = 64; 32 workgroup slots.
        (dict(warps=1, registers_per_thread=24, lds_bytes=1024), 32, "workgroups"),
        # 32 x 128 = 4096: 4 a SIMD, 16 in all, 4 workgroups; 233472 / 50176 = 4.65, so LDS allows
        # 4 as well: of equals the first is named.
        (dict(warps=4, registers_per_thread=128, lds_bytes=49152), 4, "registers"),
        # 57344 + 1024 = 58368 fits 4 times exactly ...
        (dict(warps=4, registers_per_thread=32, lds_bytes=57344), 4, "lds"),
        # ... and one byte more is rounded up to 128 more: 3
        (dict(warps=4, registers_per_thread=32, lds_bytes=57345), 3, "lds"),
    ],
)
def test_which_limit_binds(resources, workgroups, limit):
    found, binding = occupancy_of(H200, kernel(**resources))
    assert (found[0], LIMITS[binding[0]]) == (workgroups, limit)


def test_limits_are_in_the_order_of_their_names():
    # 64 / 4 wavefront slots
    allowed = limits(np.array([5.0, 20.0]), 17.0, 4, 64, 32)
    assert allowed.tolist() == [[5, 20], [17, 17], [16, 16], [32, 32]]
    held, binding = occupancy(allowed)
    assert held.tolist() == [5, 16]
    assert [LIMITS[i] for i in binding] == ["registers", "wavefronts"]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (kernel(stages=1), "fewer than 2 stages: the model has no loop without prefetch"),
        # 64 x 32 threads
        (kernel(warps=64, registers_per_thread=16), "too many threads a workgroup"),
        # 4 x (256 + 256) x 64 x 2 B = 256 KiB of at most 227
        (kernel(256, 256, stages=4, warps=8, registers_per_thread=128), "too much LDS"),
        (kernel(registers_per_thread=256), "too many registers"),
        (kernel(registers_per_thread=255, register_spills=4), "registers spilled"),
        # 255 x 32 = 8160 -> 8192: 2 a SIMD, 8 in all, of 16 needed
        (kernel(warps=16, registers_per_thread=255), "not one workgroup fits a compute unit"),
        (kernel(), ""),
    ],
)
def test_why_a_kernel_cannot_run(found, reason):
    assert infeasible(H200, found).tolist() == [reason]


def test_the_space_is_what_the_rules_give_less_what_cannot_run():
    every, space = rule_kernels(H200), kernel_space(H200)
    # 3 x 4 tiles, 3 depths, 3 stage counts, 2 wavefront counts, 3 splits
    assert len(every) == 3 * 4 * 3 * 3 * 2 * 3
    reasons = infeasible(H200, every)
    assert space.labels == [label for label, why in zip(every.labels, reasons) if not why]
    assert set(reasons) == {"", "too much LDS", "too many registers"}
    assert len(set(every.labels)) == len(every)
    assert (occupancy_of(H200, space)[0] >= 1).all()
    measured = kernels_from(DRIVER)
    assert set(measured.labels) <= set(space.labels)


def test_the_stages_count_in_the_lds():
    two, four = (kernel(stages=stages).lds_bytes[0] for stages in (2, 4))
    assert four == 2 * two == 4 * (128 + 128) * 64 * 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("registers_per_compute_unit", 32768),
        ("lds_bytes_per_compute_unit", 116736),
        ("wavefronts_per_compute_unit", 32),
        ("workgroups_per_compute_unit", 2),
        ("register_allocation_unit", 512),
        ("lds_reserve_bytes_per_workgroup", 2048),
    ],
)
def test_less_of_anything_holds_no_more_workgroups(field, value):
    kernels = rule_kernels(H200)
    less, _ = occupancy_of(replace_fields(H200, {field: value}), kernels)
    held, _ = occupancy_of(H200, kernels)
    assert (less <= held).all()
    assert (less < held).any()


def test_kernels_are_indexed_together():
    space = kernel_space(H200)
    picked = space[[3, 1]]
    assert picked.labels == [space.labels[3], space.labels[1]]
    assert picked.lds_bytes.tolist() == space.lds_bytes[[3, 1]].tolist()
    assert space[:, None].warps.shape == (len(space), 1)
    assert replace(picked, warps=picked.warps * 2).warps.tolist() == (2 * picked.warps).tolist()
