"""The GEMM kernel that is measured, in Triton, and its compilation for a target.

One workgroup a macro tile, k split and batch entry; tiles are visited in groups of 8 tile rows;
loads are pipelined over `stages`; slices of k are dealt to the parts of a split in turn, which are
added by fp32 (or int32) atomics. Rows and columns beyond the edge wrap around, so that only k and
the store need a mask.
"""

from dataclasses import dataclass

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

#: Triton's name of operands, accumulator and C for each dtype; where k is split, C is as the
#: accumulator.
TYPES = {
    "fp16": ("fp16", "fp32", "fp16"),
    "bf16": ("bf16", "fp32", "bf16"),
    "tf32": ("fp32", "fp32", "fp32"),
    "fp8": ("fp8e4nv", "fp32", "fp16"),
    "int8": ("i8", "i32", "i32"),
}

#: Sizes divisible by this let the compiler use wide loads.
ALIGNMENT = 16

_POINTERS = ("a", "b", "c")
_SIZES = ("m", "n", "k")


@triton.jit
def gemm(a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, DEPTH: tl.constexpr,
         SPLIT: tl.constexpr, TRANSPOSED_B: tl.constexpr, BATCHED: tl.constexpr,
         ACCUMULATOR: tl.constexpr):
    """C[m, n] = A[m, k] B[k, n], row-major; B is stored as [n, k] if TRANSPOSED_B."""
    GROUP: tl.constexpr = 8
    tile = tl.program_id(0)
    part = tl.program_id(1)
    if BATCHED:
        entry = tl.program_id(2).to(tl.int64)
        a += entry * m * k
        b += entry * k * n
        c += entry * m * n
    tiles_m = tl.cdiv(m, TILE_M)
    tiles_n = tl.cdiv(n, TILE_N)
    in_group = GROUP * tiles_n
    first = (tile // in_group) * GROUP
    rows = tl.minimum(tiles_m - first, GROUP)
    tile_m = first + (tile % in_group) % rows
    tile_n = (tile % in_group) // rows
    at_m = tile_m * TILE_M + tl.arange(0, TILE_M)
    at_n = tile_n * TILE_N + tl.arange(0, TILE_N)
    steps = tl.cdiv(k, DEPTH * SPLIT)
    at_k = part * DEPTH + tl.arange(0, DEPTH)
    from_a = a + (at_m % m)[:, None] * k + at_k[None, :]
    if TRANSPOSED_B:
        from_b = b + (at_n % n)[None, :] * k + at_k[:, None]
    else:
        from_b = b + at_k[:, None] * n + (at_n % n)[None, :]
    total = tl.zeros((TILE_M, TILE_N), ACCUMULATOR)
    for step in range(0, steps):
        left = k - step * (DEPTH * SPLIT)
        slice_a = tl.load(from_a, mask=at_k[None, :] < left, other=0.0)
        slice_b = tl.load(from_b, mask=at_k[:, None] < left, other=0.0)
        total = tl.dot(slice_a, slice_b, total, input_precision="tf32", out_dtype=ACCUMULATOR)
        from_a += DEPTH * SPLIT
        from_b += DEPTH * SPLIT if TRANSPOSED_B else DEPTH * SPLIT * n
    to = c + n * at_m[:, None] + at_n[None, :]
    inside = (at_m[:, None] < m) & (at_n[None, :] < n)
    if SPLIT == 1:
        tl.store(to, total.to(c.dtype.element_ty), mask=inside)
    else:
        tl.atomic_add(to, total, mask=inside, sem="relaxed")


@dataclass(frozen=True)
class Variant:
    """What a kernel is compiled for, besides its tile.

    Attributes
    ----------
    dtype : str
        A key of `TYPES`.
    transposed_b, batched : bool
    aligned : tuple of bool
        Whether m, n and k are divisible by `ALIGNMENT`.
    """

    dtype: str
    transposed_b: bool
    batched: bool
    aligned: tuple[bool, bool, bool]


def constants_of(kernel, variant):
    """Values of the kernel's compile-time arguments, in order.

    Parameters
    ----------
    kernel : tuple of int
        As `perfmodel.gpu.kernels.KERNEL`.
    variant : Variant
    """
    macro_tile_m, macro_tile_n, depth_u, _, _, split_k = kernel
    accumulator = {"fp32": tl.float32, "i32": tl.int32}[TYPES[variant.dtype][1]]
    return (macro_tile_m, macro_tile_n, depth_u, split_k, variant.transposed_b, variant.batched,
            accumulator)


def compiled(kernel, variant, target):
    """The kernel compiled for a target; from Triton's cache if it is there.

    Needs no GPU, so that many can be compiled side by side.

    Parameters
    ----------
    kernel : tuple of int
        As `perfmodel.gpu.kernels.KERNEL`.
    variant : Variant
    target : tuple
        Backend, architecture and threads of a wavefront, such as ``("cuda", 90, 32)``.

    Returns
    -------
    triton.compiler.CompiledKernel

    Raises
    ------
    Exception
        Whatever Triton raises for a kernel it cannot compile.
    """
    operand, accumulator, result = TYPES[variant.dtype]
    _, _, _, stages, warps, split_k = kernel
    names = gemm.arg_names
    constants = names[len(_POINTERS) + len(_SIZES):]
    result = accumulator if split_k > 1 else result
    signature = dict(zip(_POINTERS, (f"*{operand}", f"*{operand}", f"*{result}")))
    signature |= dict.fromkeys(_SIZES, "i32") | dict.fromkeys(constants, "constexpr")
    divisible = [*(True for _ in _POINTERS), *variant.aligned]
    attributes = {
        (at,): [["tt.divisibility", ALIGNMENT]] for at, yes in enumerate(divisible) if yes}
    source = ASTSource(
        gemm, signature, dict(zip(constants, constants_of(kernel, variant))), attributes)
    return triton.compile(
        source, target=GPUTarget(*target), options={"num_warps": warps, "num_stages": stages})
