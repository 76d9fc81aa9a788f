"""What of the live modules runs without a GPU: torch and triton are needed, but no chip."""

import os
import time

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from perfmodel.gpu.kernels import KERNEL  # noqa: E402
from perfmodel.live import compiler, graphs, operands, probe, runner, triton_gemm  # noqa: E402
from perfmodel.live.arrangement import Setting, Timing, equal  # noqa: E402
from perfmodel.live.readings import MATRIX_KERNELS  # noqa: E402
from perfmodel.live.triton_gemm import Variant  # noqa: E402


class _Stream:
    def record_event(self):
        return None


class _Graph:
    """As torch's: a capture left halfway cannot be ended well."""

    def capture_begin(self):
        pass

    def capture_end(self):
        raise RuntimeError("unjoined work")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("the kernel's own")])
def test_what_breaks_a_capture_is_what_is_raised(monkeypatch, error):
    monkeypatch.setattr(torch.cuda, "Stream", _Stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", _Graph)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: graphs.contextlib.nullcontext())

    def launch(stream):
        raise error

    with pytest.raises(type(error)) as raised:
        graphs.Graphs().timed([[launch]], cold=False)
    assert raised.value is error


HOPPER = ("cuda", 90, 32)
PLAIN = Variant("fp16", False, False, (True, True, True))


def _answer(kernel, variant, target):
    if kernel == "dies":
        os._exit(1)
    return "CompilationError: bad" if kernel == "bad" else {"wgmma_per_step": kernel}


def test_a_compiler_that_dies_takes_no_other_kernel_along(monkeypatch):
    monkeypatch.setattr(compiler, "_counts_of", _answer)
    wanted = [(kernel, PLAIN) for kernel in (1, "bad", "dies", 2, 3)]
    counts, failed = compiler.compile_ahead(wanted, HOPPER, lambda: None)
    assert counts == {(kernel, PLAIN): {"wgmma_per_step": kernel} for kernel in (1, 2, 3)}
    assert failed == {"bad": "CompilationError: bad", "dies": "the compiler died"}


def _never_twice(kernel, variant, target):
    time.sleep(0.2)
    with open(kernel, "a", encoding="utf-8"):
        return {}


def test_an_interrupt_compiles_no_more(monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "_counts_of", _never_twice)

    def interrupt():
        raise KeyboardInterrupt

    wanted = [(str(tmp_path / f"{i}"), PLAIN) for i in range(60)]
    with pytest.raises(KeyboardInterrupt):
        compiler.compile_ahead(wanted, HOPPER, interrupt)
    assert len(list(tmp_path.iterdir())) < 20


def test_a_kernel_compiles_without_a_gpu():
    counts = compiler._counts_of((64, 64, 64, 4, 4, 1), PLAIN, HOPPER)
    assert counts["wgmma_per_step"] == 4
    assert counts["async_copies_per_step"] > 0
    # Two operands of 64 x 64 halves in each of four stages
    assert triton_gemm.compiled((64, 64, 64, 4, 4, 1), PLAIN, HOPPER).metadata.shared == 65536


def test_without_a_disassembler_there_are_no_counts(monkeypatch):
    class Nothing:
        @property
        def nvdisasm(self):
            raise RuntimeError("Cannot find nvdisasm")

    monkeypatch.setattr(compiler.knobs, "nvidia", Nothing())
    binary = type("Binary", (), {"asm": {"cubin": b""}})
    assert compiler._disassembly(binary, "cuda") == ""


class NVMLError(Exception):
    """As pynvml's: of no kind that torch's errors are."""


def _refuse():
    raise NVMLError("Not Supported")


@pytest.mark.parametrize(("hip", "watts"), [(None, 1), ("6.4", 700)])
def test_what_the_driver_does_not_tell_is_left_out(monkeypatch, hip, watts):
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(torch.cuda, "clock_rate", lambda: 1830)
    monkeypatch.setattr(torch.cuda, "power_draw", lambda: 700)
    monkeypatch.setattr(torch.cuda, "temperature", _refuse)
    assert runner.telemetry() == {"clock_mhz": 1830, "power_w": watts}
    monkeypatch.setattr(torch.cuda, "clock_rate", _refuse)
    assert runner.telemetry() == {"power_w": watts}


class _SmallChip:
    """The first kernel of each dtype does not fit; the second runs, the library does not."""

    def prepare(self, kernels, gemms, setting, advance):
        return [dict(zip(KERNEL, kernels[1]))], {kernels[0]: "OutOfResources: shared memory"}

    def time(self, branches, setting):
        if branches[0][0].kernel is None:
            raise RuntimeError("no such dtype")
        if branches[0][0].kernel == MATRIX_KERNELS[setting.dtype][0]:
            raise ArithmeticError("out of resources")
        return Timing(1e-3 * len(branches[0]), 0.0)

    def state(self):
        return {"clock_mhz": 1000}


def test_the_matrix_rate_is_that_of_the_kernels_that_fit(monkeypatch):
    monkeypatch.setattr(probe, "_MATRIX_SECONDS", 0.0)
    found = probe._matrix(_SmallChip(), 100)
    assert len(found) == len(MATRIX_KERNELS)
    rate = found["matrix_fp16_flop_per_clock_per_compute_unit"]
    # 2 x 4096^3 in 1 ms on 100 units at 1 GHz
    assert rate.value == pytest.approx(2 * 4096**3 / 1e-3 / (100 * 1e9))
    assert "kernel 128x128x64" in rate.source


def test_a_kernel_must_fit_as_compiled_for_every_gemm(monkeypatch):
    one = object.__new__(runner.GpuRunner)
    one.target = HOPPER
    wide = Variant("fp16", False, False, (True, True, True))
    monkeypatch.setattr(runner, "compile_ahead", lambda wanted, target, advance: (
        {pair: {"variant": pair[1]} for pair in wanted}, {}))
    monkeypatch.setattr(runner, "resources_of", lambda kernel, binary, variant, target: {
        "kernel": kernel, "binary": binary})

    def binary(kernel, variant):
        if kernel == "large" and variant == wide:
            raise MemoryError("out of resources")
        return kernel, variant

    monkeypatch.setattr(one, "_binary", binary)
    rows, failed = one.prepare(
        ["small", "large"], [(64, 64, 63, 1), (64, 64, 64, 1)], Setting(), None)
    assert rows == [{"kernel": "small", "binary": ("small", wide), "variant": wide}]
    assert failed == {"large": "MemoryError: out of resources"}


@pytest.mark.parametrize(("l2_bytes", "flushed"), [(4 << 20, 128 << 20), (60 << 20, 240 << 20)])
def test_l2_of_all_dies_is_emptied(monkeypatch, l2_bytes, flushed):
    sizes = []

    def ones(size, device, dtype):
        sizes.append(4 * size)
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.cuda, "Stream", _Stream)
    monkeypatch.setattr(torch.cuda, "get_device_properties",
                        lambda device: type("Properties", (), {"L2_cache_size": l2_bytes}))
    monkeypatch.setattr(torch, "ones", ones)
    with pytest.raises(KeyboardInterrupt):
        graphs.Graphs()._cold(None, None)
    assert sizes == [flushed]


def test_too_little_memory_is_pythons_own_error(monkeypatch):
    one = object.__new__(runner.GpuRunner)
    one._operands = type("Operands", (), {"drop_others": lambda self, gemms: None})()

    def launcher(launch, setting):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(one, "_launcher", launcher)
    with pytest.raises(MemoryError, match="CUDA out of memory"):
        one.time(equal((64, 64, 64, 1), None, 1, 1), Setting())


def test_operands_of_other_gemms_are_dropped_by_the_share_of_memory(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_properties",
                        lambda device: type("Properties", (), {"total_memory": 8 * 100}))
    monkeypatch.setattr(torch, "Generator", lambda device: torch.default_generator)
    kept = operands.Operands(1)
    small, large = (1, 1, 1, 1), (5, 5, 1, 1)
    kept._keep((small, "fp16", False, 0), (torch.zeros(25),))
    kept.drop_others({large})
    assert len(kept._kept) == 1  # 100 of 100 B
    kept._keep((large, "fp16", False, 0), (torch.zeros(1),))
    kept.drop_others({large})
    assert [key[0] for key in kept._kept] == [large] and kept._bytes == 4


@pytest.mark.parametrize("k", [1, 16, 1024])
@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp8", "int8"])
def test_rounding_is_right_and_one_wrong_tile_is_not(dtype, k):
    random = torch.Generator().manual_seed(k)
    operand, stored, _ = operands.STORAGE[dtype]
    if dtype == "int8":
        a, b = (torch.randint(-127, 128, shape, generator=random)
                for shape in ((1024, k), (k, 1500)))
    else:
        a, b = (torch.randn(shape, generator=random).to(operand)
                for shape in ((1024, k), (k, 1500)))
    exact = operands.exact_product(a, b)
    result = exact.to(stored)
    tolerance = operands.TOLERANCE[dtype]
    assert operands.relative_error(result, exact) <= tolerance
    tile = result[512:528, 64:80]
    tile[:] = tile.flip(0)
    # By the norm alone, 1e-4 of the elements: about 0.016
    assert operands.relative_error(result, exact) > 2 * tolerance
    tile[0, 0] = torch.nan if stored.is_floating_point else -(2**30)
    assert not operands.relative_error(result, exact) <= tolerance


def test_rounded_operands_of_tf32_are_right():
    random = torch.Generator().manual_seed(0)
    a, b = (torch.randn(shape, generator=random) for shape in ((1024, 512), (512, 1024)))
    # Ten bits of the fraction are kept, the others cut off.
    cut = [(x.view(torch.int32) & ~0x1FFF).view(torch.float32) for x in (a, b)]
    result = operands.exact_product(*cut).float()
    error = operands.relative_error(result, operands.exact_product(a, b))
    assert 5e-4 < error <= operands.TOLERANCE["tf32"]
