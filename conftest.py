"""Which modules pytest leaves alone: those that cannot be imported without torch and triton."""

from importlib.util import find_spec
from pathlib import Path

_LIVE = Path(__file__).parent / "perfmodel" / "live"
_ON_A_GPU = (
    "compiler", "graphs", "operands", "probe", "probe_kernels", "runner", "triton_gemm")

collect_ignore = [
    str(_LIVE / f"{name}.py") for name in _ON_A_GPU
    if find_spec("torch") is None or find_spec("triton") is None
]
