"""Asks nvMatmulHeuristics; runs in its own virtual environment, tables on stdin and stdout.

``estimate``: a row has m, n, k, batch and a kernel; answered by ``seconds``.
``pick``: a row has m, n, k, batch; answered by the kernels it would try, best first, one row each:
``row`` (of the question), ``rank``, the kernel and ``seconds``.
"""

import csv
import ctypes
import sys

from nvMatmulHeuristics import (
    NvMatmulHeuristicsFlags,
    NvMatmulHeuristicsInterfaceEx,
    NvMatmulHeuristicsMatmulLayout,
    NvMatmulHeuristicsNvidiaGpu,
    NvMatmulHeuristicsTarget,
)

#: Ampere's instruction, which the Triton target's own picks name too; estimates ignore it.
INSTRUCTION = (16, 8, 16)


def main(task, target, precision, layout, gpu, flags, count):
    """Answer every row of standard input."""
    layout = NvMatmulHeuristicsMatmulLayout[layout]
    peer = NvMatmulHeuristicsInterfaceEx(
        backend=NvMatmulHeuristicsTarget[target], gpu=NvMatmulHeuristicsNvidiaGpu[gpu],
        flags=NvMatmulHeuristicsFlags[flags])
    peer.loadInternalDiscoverySet(layout, precision)
    out = csv.writer(sys.stdout)
    picks = task == "pick"
    out.writerow(["row", "rank", "macro_tile_m", "macro_tile_n", "depth_u", "stages", "warps",
                  "split_k", "seconds"] if picks else ["seconds"])
    for i, row in enumerate(csv.DictReader(sys.stdin)):
        row = {name: int(value) for name, value in row.items()}
        problem = peer.makeNvMatmulHeuristicsProblem(
            row["m"], row["n"], row["k"], layout, row["batch"])
        if picks:
            for rank, found in enumerate(peer.get(problem, int(count), precision)):
                out.writerow([i, rank, *_kernel(found["kernel"]), found["runtime"]])
        else:
            out.writerow([_estimate(peer, target, precision, problem, row)])


def _kernel(of):
    warps = of.cta_tile_m * of.cta_tile_n // (of.warp_tile_m * of.warp_tile_n)
    return (of.cta_tile_m, of.cta_tile_n, of.cta_tile_k, of.stages, warps, of.split_k)


def _estimate(peer, target, precision, problem, row):
    """The C call itself: the wrapper's estimateRuntime fails, it calls what is not there."""
    kernel = peer.nvmmhKernelConfiguration()
    kernel.cta[:] = row["macro_tile_m"], row["macro_tile_n"], row["depth_u"]
    kernel.warp[:] = *_warp_tile(row), row["depth_u"]
    kernel.instr[:] = INSTRUCTION
    kernel.splitK, kernel.loadStages = row["split_k"], row["stages"]
    kernel.gridSwizzle, kernel.cluster[:] = 1, (1, 1)
    return peer.nvMatmulHeuristicsEstimateRuntime(
        peer.handle, precision.encode(), ctypes.c_int(NvMatmulHeuristicsTarget[target]),
        ctypes.byref(problem), ctypes.byref(kernel), peer.hardware_descriptor)


def _warp_tile(row):
    """The squarest part of the tile for each of its warps."""
    m, n, warps = row["macro_tile_m"], row["macro_tile_n"], row["warps"]
    shares = [(m // a, n // (warps // a)) for a in (1, 2, 4, 8) if warps % a == 0]
    return min(shares, key=lambda side: max(side) / min(side))


if __name__ == "__main__":
    main(*sys.argv[1:])
