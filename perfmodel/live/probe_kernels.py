"""Small kernels that use one resource of a GPU at a time, in Triton."""

import triton
import triton.language as tl


@triton.jit
def read(source, sink, passes, WORDS: tl.constexpr, BLOCK: tl.constexpr, SHARED: tl.constexpr):
    """Each workgroup reads WORDS words, `passes` times: its own, or all the same if SHARED."""
    first = source
    if not SHARED:
        first += tl.program_id(0) * WORDS
    total = tl.zeros((BLOCK,), tl.int32)
    for turn in range(passes):
        for at in range(0, WORDS, BLOCK):
            # Past L1: what is wanted is the way to L2. Each turn begins elsewhere, or the
            # compiler would read only once.
            begin = tl.multiple_of((at + turn * BLOCK) % WORDS, BLOCK)
            total += tl.load(first + begin + tl.arange(0, BLOCK), cache_modifier=".cg")
    tl.store(sink + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit
def shuffle(sink, passes, WORDS: tl.constexpr, SHIFT: tl.constexpr):
    """Each workgroup writes WORDS words to LDS and reads them from other places, in turn."""
    at = tl.arange(0, WORDS)
    words = at
    index = (at + SHIFT) % WORDS
    for _ in range(passes):
        words = tl.gather(words, index, 0) + 1
    tl.store(sink + tl.program_id(0) * WORDS + at, words)


@triton.jit
def chase(source, sink, passes):
    """Each workgroup follows a chain of loads: only their latency takes time."""
    at = tl.load(source + tl.program_id(0) * 32)
    for _ in range(passes):
        at = tl.load(source + at, volatile=True)
    tl.store(sink + tl.program_id(0), at)


@triton.jit
def touch(sink):
    """Next to nothing: the smallest launch."""
    tl.store(sink + tl.program_id(0), 1)
