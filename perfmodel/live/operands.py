"""Random operands on the GPU, and the check of a result against float64."""

import torch

#: Storage of operands, and of C where k is not split and where it is, for each dtype.
STORAGE = {
    "fp16": (torch.float16, torch.float16, torch.float32),
    "bf16": (torch.bfloat16, torch.bfloat16, torch.float32),
    "tf32": (torch.float32, torch.float32, torch.float32),
    "fp8": (getattr(torch, "float8_e4m3fn", None), torch.float16, torch.float32),
    "int8": (torch.int8, torch.int32, torch.int32),
}

#: Largest `relative_error` of a right result. fp8's matrix units keep
#: few bits of the sum; integers are exact.
TOLERANCE = {"fp16": 2e-3, "bf16": 1e-2, "tf32": 2e-3, "fp8": 2e-2, "int8": 0.0}

#: The worst of millions of right elements is so many times as far off as all together.
_OUTLIER = 5

#: Operands of GEMMs no longer asked for are dropped when all together exceed this share of memory.
_KEPT_SHARE = 1 / 8


class Operands:
    """Sets of operands of GEMMs, made when first asked for.

    Parameters
    ----------
    seed : int
        Of the random numbers.
    """

    def __init__(self, seed):
        self._random = torch.Generator("cuda").manual_seed(seed)
        self._kept = {}
        self._bytes = 0
        self._most_bytes = torch.cuda.get_device_properties(0).total_memory * _KEPT_SHARE

    def of(self, gemm, setting, number):
        """A [batch, m, k] and B [batch, k, n] of one set; without the axis if batch is 1."""
        key = (gemm, setting.dtype, setting.transposed_b, number)
        if key not in self._kept:
            m, n, k, batch = gemm
            a = self._drawn((batch, m, k), setting.dtype)
            b = (self._drawn((batch, n, k), setting.dtype).mT if setting.transposed_b
                 else self._drawn((batch, k, n), setting.dtype))
            self._keep(key, (a, b) if batch > 1 else (a[0], b[0]))
        return self._kept[key]

    def result(self, gemm, setting, number, split):
        """C [batch, m, n] of one set; without the axis if batch is 1."""
        m, n, _, batch = gemm
        storage = STORAGE[setting.dtype][2 if split else 1]
        key = (gemm, storage, number)
        if key not in self._kept:
            shape = (batch, m, n) if batch > 1 else (m, n)
            self._keep(key, (torch.zeros(shape, device="cuda", dtype=storage),))
        return self._kept[key][0]

    def drop_others(self, gemms):
        """Forget operands of other GEMMs than these, if there are too many."""
        if self._bytes > self._most_bytes:
            self._kept = {key: kept for key, kept in self._kept.items() if key[0] in gemms}
            self._bytes = sum(map(_size, self._kept.values()))

    def _keep(self, key, tensors):
        self._kept[key] = tensors
        self._bytes += _size(tensors)

    def _drawn(self, shape, dtype):
        storage = STORAGE[dtype][0]
        if storage is torch.int8:
            return torch.randint(-127, 128, shape, generator=self._random, device="cuda",
                                 dtype=storage)
        drawn = torch.randn(shape, generator=self._random, device="cuda", dtype=torch.float32)
        return drawn.to(storage)


def exact_product(a, b):
    """A B in float64."""
    return a.double() @ b.double()


def relative_error(result, exact):
    """Error of a result, float; NaN where the result has one.

    Frobenius norm of result - exact over that of exact, or what the worst element says if that is
    more: among millions a wrong tile would not show in the norm.
    """
    error = result.double() - exact
    norm = torch.linalg.vector_norm(exact)
    whole = torch.linalg.vector_norm(error) / norm
    typical = norm / exact.numel() ** 0.5
    worst = error.abs_().div_(exact.abs().add_(typical)).max() / _OUTLIER
    return float(torch.maximum(whole, worst))


def _size(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
