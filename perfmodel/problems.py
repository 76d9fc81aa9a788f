"""GEMM problems: their sizes, types and amounts of work."""

from dataclasses import dataclass

import numpy as np

from perfmodel.checks import one_of, positive_integer, refusal

#: Bytes of one element of each dtype; tf32 is stored as fp32.
BYTES_PER_ELEMENT = {
    "fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1,
}
DTYPES = tuple(BYTES_PER_ELEMENT)

#: Bytes of one element of C where it is not stored as A and B are: fp8 gives fp16, int8 int32.
BYTES_PER_OUTPUT = BYTES_PER_ELEMENT | {"fp8": 2, "int8": 4}

#: Largest side or batch accepted; anything larger is taken for a slip.
SIZE_LIMIT = 2**24


@dataclass(frozen=True, eq=False)
class Gemms:
    """Problems C[m, n] = A[m, k] B[k, n], `batch` copies each, all of one dtype.

    Make one with `gemms`, which checks, or with `parse_gemm`.

    Attributes
    ----------
    m, n, k, batch : int64 array, shape (problem,)
        Indexed together: ``gemms[:, None]`` makes room for an axis of kernels.
    dtype : str
        One of `DTYPES`.
    """

    m: np.ndarray
    n: np.ndarray
    k: np.ndarray
    batch: np.ndarray
    dtype: str

    def __len__(self):
        return len(self.m)

    def __getitem__(self, index):
        sizes = (self.m, self.n, self.k, self.batch)
        return Gemms(*(size[index] for size in sizes), self.dtype)

    @property
    def flop(self):
        """Floating-point operations of each problem, float64 of shape (problem,) [FLOP].

        .. math:: 2 m n k \\, \\mathrm{batch}
        """
        return 2.0 * self.m * self.n * self.k * self.batch

    @property
    def bytes_per_element(self):
        """Size of one operand element [B]."""
        return BYTES_PER_ELEMENT[self.dtype]

    @property
    def bytes_per_output(self):
        """Size of one element of C [B]."""
        return BYTES_PER_OUTPUT[self.dtype]

    @property
    def labels(self):
        """Sizes as `parse_gemm` reads them, list of str.

        Examples
        --------
        >>> gemms([512, 64], 1024, 2048, batch=[1, 8]).labels
        ['512x1024x2048', '64x1024x2048x8']
        """
        sizes = zip(self.m, self.n, self.k, self.batch)
        return [f"{m}x{n}x{k}" + (f"x{batch}" if batch > 1 else "") for m, n, k, batch in sizes]


def gemms(m, n, k, batch=1, dtype="fp16"):
    """Problems from sizes, broadcast against each other.

    Parameters
    ----------
    m, n, k, batch : array_like of int, shape (problem,) or scalar
        Sides [elements] and copies, each from 1 to `SIZE_LIMIT`.
    dtype : str
        One of `DTYPES`.

    Returns
    -------
    Gemms

    Raises
    ------
    ValueError
        If a size is not an integer or out of range, shapes do not broadcast to one axis, or the
        dtype is unknown.

    Examples
    --------
    >>> gemms([512, 1024], 1024, 2048).flop / 1e9
    array([2.14748365, 4.2949673 ])
    """
    one_of("dtype", dtype, DTYPES)
    sizes = {"m": m, "n": n, "k": k, "batch": batch}
    arrays = [_sizes(name, size) for name, size in sizes.items()]
    try:
        arrays = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(sizes, arrays))
        raise ValueError(f"m, n, k and batch must broadcast to one axis, not {shapes}") from None
    return Gemms(*(array.copy() for array in arrays), dtype)


def parse_gemm(text, dtype="fp16"):
    """One problem from text such as ``512x1024x2048`` (m, n, k) or ``512x1024x2048x8`` (batch 8).

    Parameters
    ----------
    text : str
    dtype : str
        One of `DTYPES`.

    Returns
    -------
    Gemms
        Of length 1.

    Raises
    ------
    ValueError
        If the text has not three or four sizes, or as in `gemms`.

    Examples
    --------
    >>> parse_gemm("512x1024x2048x8").batch
    array([8])
    """
    parts = text.split("x")
    if len(parts) not in (3, 4):
        raise refusal("GEMM", "MxNxK or MxNxKxBATCH, such as 512x1024x2048", text)
    names = ("m", "n", "k", "batch")
    where = f"in GEMM {text!r}"
    sizes = [positive_integer(name, part, SIZE_LIMIT, where) for name, part in zip(names, parts)]
    return gemms(*sizes, dtype=dtype)


def _sizes(name, size):
    array = np.atleast_1d(np.asarray(size))
    rule = f"an integer from 1 to {SIZE_LIMIT}"
    if array.ndim > 1:
        raise refusal(name, "a scalar or of shape (problem,)", array.shape)
    if array.size == 0 or array.dtype.kind not in "iu":
        raise refusal(name, rule, array[0] if array.size else None)
    bad = (array < 1) | (array > SIZE_LIMIT)
    if bad.any():
        raise refusal(name, rule, array[bad][0])
    return array.astype(np.int64)
