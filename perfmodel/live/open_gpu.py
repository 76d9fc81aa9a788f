"""The runner of this machine's GPU, or one line that says why there is none."""

from importlib.util import find_spec

from perfmodel.live.one_line import failing_in_one_line


def open_gpu(seed=0, captured=True):
    """The runner of the GPU that torch calls number 0.

    Parameters
    ----------
    seed : int
        Of the operands.
    captured : bool
        Whether branches are captured in graphs.

    Returns
    -------
    runner.GpuRunner

    Raises
    ------
    OSError
        If torch or triton is missing or broken, or torch finds no GPU that it can use.
    """
    missing = [name for name in ("torch", "triton") if find_spec(name) is None]
    if missing:
        raise OSError(f"measuring needs {' and '.join(missing)} (the extra 'measure')")
    with failing_in_one_line("the GPU cannot be used"):
        import torch

        if not torch.cuda.is_available():
            raise OSError("no GPU here that torch can use")
        from perfmodel.live.runner import GpuRunner

        return GpuRunner(seed, captured)
