"""The whole space, the picks from it, and advice for one GEMM."""

from dataclasses import replace

import numpy as np
import pytest

from perfmodel.device_files import load_device
from perfmodel.devices import TEXTS, gpu_from, history_of, replace_fields, with_fit
from perfmodel.gpu.kernels import KERNEL, kernel_space, kernels_from, occupancy_of
from perfmodel.gpu.machine import machine_of
from perfmodel.gpu.parameters import PARAMETERS, borrowed, values_of
from perfmodel.gpu.predict import advise, as_record, interval_factors, outside_of, predict
from perfmodel.gpu.space import Space, evaluate
from perfmodel.gpu.breakdown import TERMS
from perfmodel.gpu.timing import concurrent_time
from perfmodel.problems import gemms, parse_gemm

H200 = load_device("h200")
SPACE = kernel_space(H200)
GEMM = parse_gemm("512x1024x2048")


def table(*tiles):
    return kernels_from(dict(zip(KERNEL, np.transpose(tiles))))


#: The last two do not fit: 512 KiB of LDS, 1.29 x 512 registers.
USERS = table(
    (128, 128, 64, 3, 8, 1), (64, 64, 64, 4, 4, 1), (256, 256, 128, 4, 8, 1),
    (256, 256, 32, 2, 4, 1))


def test_the_best_is_the_fastest_and_of_equals_the_first():
    times = np.array([[[3, 1], [2, 1], [2, 5]], [[np.nan, 4], [7, np.nan], [7, 4]]], float)
    space = Space(gemms([1, 2], 1, 1), SPACE[:3], np.array([1, 8]), times)
    assert space.best(1).tolist() == [1, 1]
    assert space.best(8).tolist() == [0, 0]


@pytest.mark.parametrize("degree", [1, 4, 16])
def test_a_kernel_listed_twice_is_picked_the_first_time(degree):
    problems = gemms([64, 512, 4096], [4096, 1024, 64], [512, 2048, 1024])
    once = evaluate(H200, problems, SPACE, [degree]).best(degree)
    twice = SPACE[np.tile(np.arange(len(SPACE)), 2)]
    assert evaluate(H200, problems, twice, [degree]).best(degree).tolist() == once.tolist()
    each_twice = SPACE[np.repeat(np.arange(len(SPACE)), 2)]
    best = evaluate(H200, problems, each_twice, [degree]).best(degree)
    assert best.tolist() == (2 * once).tolist()


def test_a_subset_is_a_slice_of_the_whole():
    problems = gemms([64, 333, 4096], [4096, 1001, 64], [512, 77, 1024], [1, 3, 2])
    degrees = [1, 3, 16]
    whole = evaluate(H200, problems, SPACE, degrees).seconds
    assert whole.shape == (3, len(SPACE), 3)
    some = np.array([5, 400, 41])
    part = evaluate(H200, problems[[2, 0]], SPACE[some], [16, 1]).seconds
    np.testing.assert_allclose(part, whole[np.ix_([2, 0], some, [2, 0])], rtol=1e-13)


def test_the_space_is_the_time_of_each_element():
    problems, kernels = gemms([64, 333], [4096, 1001], [512, 77]), SPACE[::200]
    space = evaluate(H200, problems, kernels, [1, 8], rounds=5)
    occupancy, _ = occupancy_of(H200, kernels)
    time = concurrent_time(
        machine_of(H200, "fp16"), problems[:, None, None], kernels[None, :, None],
        occupancy[None, :, None], np.array([1, 8]), 5)
    np.testing.assert_allclose(space.seconds, time, rtol=1e-13)


def test_parameters_in_place_of_the_devices_own():
    slower = values_of(H200) | {"launch_gap_s": 9e-6}
    own, other = (
        evaluate(H200, GEMM, SPACE[:5], [1], values=values).seconds for values in (None, slower))
    # Alone it hardly meets HBM: the gap adds nearly as it is.
    gap = values_of(H200)["launch_gap_s"]
    assert other - own == pytest.approx(9e-6 - gap, rel=0.02)


def test_kernels_of_the_user():
    space = evaluate(H200, GEMM, USERS, [1, 8])
    assert np.isnan(space.seconds[0]).all(axis=1).tolist() == [False, False, True, True]
    assert set(space.best(1)) | set(space.best(8)) <= {0, 1}
    advice = advise(H200, GEMM, 8, USERS)
    assert advice.go_kernel.kernel.labels[0] in USERS.labels[:2]


def test_none_that_fits_is_refused():
    with pytest.raises(ValueError) as refused:
        evaluate(H200, GEMM, USERS[2:], [1])
    assert str(refused.value) == "h200: none of the 2 kernels fits the device"
    with pytest.raises(ValueError, match="^h200: none of the 2 kernels fits"):
        advise(H200, GEMM, 4, USERS[2:])


@pytest.mark.parametrize("degree", [1, 2, 8, 16])
@pytest.mark.parametrize("text", ["512x1024x2048", "64x4096x1024", "4096x4096x4096", "96x96x96x12"])
def test_advice(text, degree):
    gemm = parse_gemm(text)
    advice = advise(H200, gemm, degree)
    space = evaluate(H200, gemm, SPACE, np.unique([1, degree]))
    alone, together = advice.isolated_best, advice.go_kernel
    assert alone.kernel.labels == [SPACE.labels[space.best(1)[0]]]
    assert together.kernel.labels == [SPACE.labels[space.best(degree)[0]]]
    assert alone.isolated_seconds == space.seconds[0, :, 0].min()
    assert together.concurrent_seconds == space.seconds[0, :, -1].min()
    assert advice.sequential_seconds == degree * alone.isolated_seconds
    assert advice.over_sequential == pytest.approx(
        degree * alone.isolated_seconds / together.concurrent_seconds, rel=1e-12)
    assert advice.over_default == pytest.approx(
        alone.concurrent_seconds / together.concurrent_seconds, rel=1e-12)
    assert advice.default_over_sequential == pytest.approx(
        advice.over_sequential / advice.over_default, rel=1e-12)
    assert advice.over_default >= 1
    if degree == 1:
        assert alone.kernel.labels == together.kernel.labels
        assert advice.over_sequential == 1


def test_a_prediction_tells_what_it_is_made_of():
    # 512 x 1024 in 128 x 128: 4 x 8 = 32 workgroups; 4 together 128 on 132 units of 2: 0.48 waves.
    # 98304 + 1024 B of LDS: 2 of 233472; some 118 registers, 3840 a wavefront: 4 a SIMD, so 2 too.
    found = predict(H200, GEMM, USERS[:1], 4)
    held, _ = occupancy_of(H200, USERS[:1])
    assert (found.occupancy, found.workgroups) == (held[0], 32)
    assert found.occupancy_limit == "registers"
    assert found.waves == pytest.approx(4 * 32 / (132 * held[0]))
    assert set(found.terms) == set(TERMS)
    assert sum(found.terms.values()) == pytest.approx(found.concurrent_seconds, rel=1e-9)
    assert found.terms[found.binds] == max(found.terms.values())
    assert found.isolated_seconds < found.concurrent_seconds


def test_record_of_a_prediction():
    found = predict(H200, GEMM, USERS[:1], 4)
    record = as_record(found)
    assert record["kernel"] == "128x128x64 s3 w8 z1"
    assert [record[name] for name in KERNEL] == [128, 128, 64, 3, 8, 1]
    assert record["resources"] == "estimated"
    assert record["concurrent_time_us"] == pytest.approx(found.concurrent_seconds * 1e6)
    assert sum(record["breakdown_us"].values()) == pytest.approx(record["concurrent_time_us"])
    low, high = record["interval_90_us"]
    assert low < record["concurrent_time_us"] < high
    assert record["outside_calibrated_range"] == []


def test_interval_factors_interpolate_in_the_logarithm_of_the_degree():
    stated = {"degrees": [1, 4, 16], "low": [0.9, 0.8, 0.7], "high": [1.1, 1.3, 1.2]}
    device = with_fit(H200, H200.fitted, {"interval": stated})
    # 2 lies half-way from 1 to 4, 8 half-way from 4 to 16; beyond 16 the last holds.
    low, high = interval_factors(device, [1, 2, 4, 8, 16, 64])
    assert low == pytest.approx([0.9, 0.85, 0.8, 0.75, 0.7, 0.7])
    assert high == pytest.approx([1.1, 1.2, 1.3, 1.25, 1.2, 1.2])
    found = predict(device, GEMM, USERS[:1], 2)
    assert np.array(found.interval_seconds) / found.concurrent_seconds == pytest.approx([0.85, 1.2])


def test_the_shipped_interval_has_the_time_inside():
    low, high = interval_factors(H200, np.arange(1, 100))
    assert ((low < 1) & (high > 1)).all()


@pytest.mark.parametrize(
    ("gemm", "tile", "degree", "outside"),
    [
        ("512x1024x2048", (128, 128, 64, 3, 8, 1), 16, ()),
        ("512x1024x16384", (128, 128, 64, 3, 8, 1), 8, ("k 16384 (calibrated 128 to 8192)",)),
        ("16x1024x2048", (128, 128, 64, 3, 8, 1), 8, ("m 16 (calibrated 64 to 4800)",)),
        (
            "512x1024x2048", (128, 128, 64, 2, 8, 8), 32,
            ("stages 2 (calibrated 3 to 4)", "split_k 8 (calibrated 1 to 4)",
             "concurrency_degree 32 (calibrated 1 to 16)"),
        ),
    ],
)
def test_outside_of_the_calibrated_range(gemm, tile, degree, outside):
    assert outside_of(H200, parse_gemm(gemm), table(tile), degree) == outside
    assert predict(H200, parse_gemm(gemm), table(tile), degree).outside == outside


def test_outside_by_dtype():
    assert outside_of(H200, parse_gemm("512x1024x2048", "bf16"), USERS[:1], 4) == (
        "dtype bf16 (calibrated fp16)",)


def test_a_device_without_a_range_is_outside_of_nothing():
    bare = with_fit(H200, H200.fitted, {})
    assert outside_of(bare, parse_gemm("1x1x1"), USERS[:1], 999) == ()


def test_borrowed_parameters_state_no_interval_and_keep_the_range():
    device = borrowed(load_device("h100-sxm"), H200)
    assert values_of(device) == values_of(H200)
    assert device.fit["borrowed_from"] == "h200"
    assert np.isnan(interval_factors(device, [1, 4])).all()
    found = predict(device, parse_gemm("16x1024x2048"), USERS[:1], 4)
    assert np.isnan(found.interval_seconds).all()
    assert as_record(found)["interval_90_us"] is None
    assert found.outside == ("m 16 (calibrated 64 to 4800)",)
    assert not load_device("h100-sxm").fitted


def test_borrowing_leaves_the_devices_own_facts():
    device = borrowed(load_device("a100-80gb"), H200)
    assert device.hbm_bytes_per_s == load_device("a100-80gb").hbm_bytes_per_s
    assert device.sources["l2_bytes_per_clock_per_compute_unit"].kind == "assumed"
    assert advise(device, GEMM, 4).isolated_best.isolated_seconds > (
        advise(H200, GEMM, 4).isolated_best.isolated_seconds)


def without(device, name):
    texts = {key: getattr(device, key) for key in TEXTS}
    known = {key: row for key, row in history_of(device).items() if key != name}
    return gpu_from(texts, known, device.fitted, device.fit)


@pytest.mark.parametrize(
    "name",
    ["hbm_bytes_per_s", "l2_bytes", "clock_hz", "compute_units", "register_allocation_unit",
     "l2_bytes_per_clock_per_compute_unit", "lds_bytes_per_compute_unit"],
)
def test_a_fact_that_is_not_known_is_a_clear_error(name):
    with pytest.raises(ValueError) as refused:
        evaluate(without(H200, name), GEMM, SPACE[:3], [1])
    assert str(refused.value).startswith(f"h200: {name} is not known: its device file leaves")


def test_no_fitted_parameters_or_not_all():
    with pytest.raises(ValueError) as refused:
        advise(load_device("h100-sxm"), GEMM, 2)
    assert str(refused.value) == (
        "h100-sxm: no fitted parameters: calibrate it (perfmodel calibrate FILE --device h100-sxm"
        " -o NEW.toml), or take another chip's, uncalibrated (--parameters-from h200)")
    lacking = {name: value for name, value in H200.fitted.items() if name != "tail_share"}
    with pytest.raises(ValueError, match="^h200: no fitted tail_share: calibrate it"):
        advise(with_fit(H200, lacking, {}), GEMM, 2)
    with pytest.raises(ValueError, match="^v100: no fitted parameters"):
        borrowed(H200, load_device("v100"))


def test_a_dtype_the_device_lacks():
    with pytest.raises(ValueError, match="^v100: no matrix rate is known for fp8"):
        advise(borrowed(load_device("v100"), H200), parse_gemm("64x64x64", "fp8"), 2)


def test_every_parameter_of_the_shipped_fit_is_inside_its_bounds():
    for name, parameter in PARAMETERS.items():
        fitted = H200.fitted[name]
        assert parameter.lower < fitted.value < parameter.upper, name
        assert fitted.unit == parameter.unit


def test_a_what_if_changes_the_time():
    half = replace_fields(H200, {"compute_units": 66})
    big = parse_gemm("4096x4096x4096")
    less, whole = (evaluate(device, big, SPACE[:50], [1]).seconds for device in (half, H200))
    assert ((less / whole > 1.5) & (less / whole < 2.1)).all()


def test_a_cold_l2_is_stated_and_its_limits_are_named():
    problem, kernel = gemms(512, 1024, 2048), table((128, 128, 64, 3, 8, 1))
    warm, cold = (predict(H200, problem, kernel, 8, 1, state) for state in (False, True))
    assert cold.concurrent_seconds > warm.concurrent_seconds
    assert not any("cold" in axis for axis in cold.outside)
    assert np.isfinite(cold.interval_seconds).all()
    assert "rounds 3 from a cold L2 (calibrated 1)" in predict(
        H200, problem, kernel, 8, 3, True).outside
    never = with_fit(H200, H200.fitted | {
        "cold_start_share": replace(H200.fitted["cold_start_share"], standard_error=0.0)}, H200.fit)
    assert "cold L2 (calibrated warm)" in predict(never, problem, kernel, 8, 1, True).outside
