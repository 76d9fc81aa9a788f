"""On a GPU that torch can use: the kernel is right, and repeats the shipped table on an H200."""

from importlib.util import find_spec

import pytest

from perfmodel.live.arrangement import Setting, equal, waiting

pytestmark = pytest.mark.gpu

KERNELS = [(64, 64, 64, 3, 4, 1), (64, 64, 64, 3, 4, 4), (128, 128, 64, 3, 8, 1)]


@pytest.fixture(scope="module")
def runner():
    if find_spec("torch") is None or find_spec("triton") is None:
        pytest.skip("torch and triton are not installed")
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    from perfmodel.live.open_gpu import open_gpu

    return open_gpu(seed=1)


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "tf32", "fp8", "int8"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("gemm", [(512, 256, 1024, 1), (200, 300, 77, 1), (1, 4096, 128, 3)])
def test_results_are_right(runner, dtype, kernel, gemm):
    setting = Setting(dtype, dtype in ("tf32", "fp8", "int8"))
    assert runner.check(gemm, kernel, setting) == ""


def test_cold_is_slower_than_warm(runner):
    branches = equal((1024, 1024, 4096, 1), KERNELS[2], 1, 1)
    warm = runner.time(branches, Setting())
    cold = runner.time(branches, Setting(cold=True))
    assert cold.seconds > warm.seconds


def test_together_is_faster_than_one_after_the_other(runner):
    alone = runner.time(waiting((256, 256, 2048, 1), KERNELS[0], 8, 1, 3), Setting())
    together = runner.time(waiting((256, 256, 2048, 1), KERNELS[0], 8, 8, 3), Setting())
    assert together.seconds < 0.8 * alone.seconds
