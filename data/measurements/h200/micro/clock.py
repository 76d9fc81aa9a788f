"""How micro/clock.csv was measured: cycles and clock of GEMM workgroups, read inside the kernel.

Run on a machine with an NVIDIA GPU, PyTorch and Triton: ``python clock.py > clock.csv``. Each
workgroup reads its compute unit's cycle counter and the chip's timer at its start and end; their
ratio, over all workgroups, is the clock. A graph of three launches is replayed for the given time
before the last replay is read.
"""

import torch
import triton
import triton.language as tl

GEMMS = [
    (512, 1024, 1024), (512, 2048, 2048), (512, 2048, 8192), (1024, 1024, 1024),
    (1024, 1024, 4096), (1024, 1536, 1536), (1024, 1536, 6144), (1024, 2048, 8192),
    (896, 4128, 5120), (512, 8192, 2048),
]
WIDE = (128, 256, 64, 4, 8)
NARROW = [(128, 64, 64, 4, 4), (128, 64, 64, 3, 4), (64, 64, 64, 3, 4), (64, 64, 64, 4, 4)]


@triton.jit
def timer():
    return tl.inline_asm_elementwise(
        "mov.u64 $0, %globaltimer;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)


@triton.jit
def cycles():
    return tl.inline_asm_elementwise(
        "mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)


@triton.jit
def gemm(a, b, c, stamps, m, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    program = tl.program_id(0)
    first_cycle, first_time = cycles(), timer()
    rows_of_tiles, columns_of_tiles = tl.cdiv(m, TM), tl.cdiv(n, TN)
    group = 8 * columns_of_tiles
    first = program // group * 8
    height = tl.minimum(rows_of_tiles - first, 8)
    row, column = first + program % group % height, program % group // height
    rm, rn = row * TM + tl.arange(0, TM), column * TN + tl.arange(0, TN)
    depth = tl.arange(0, TK)
    pa = a + (rm % m)[:, None] * k + depth[None, :]
    pb = b + depth[:, None] * n + (rn % n)[None, :]
    total = tl.zeros((TM, TN), tl.float32)
    for step in range(tl.cdiv(k, TK)):
        left = k - step * TK
        total = tl.dot(tl.load(pa, mask=depth[None, :] < left, other=0.0),
                       tl.load(pb, mask=depth[:, None] < left, other=0.0), total)
        pa += TK
        pb += TK * n
    inside = (rm[:, None] < m) & (rn[None, :] < n)
    tl.store(c + rm[:, None] * n + rn[None, :], total.to(tl.float16), mask=inside)
    at = stamps + program * 4
    tl.store(at, first_cycle)
    tl.store(at + 1, cycles())
    tl.store(at + 2, first_time)
    tl.store(at + 3, timer())


def measure(m, n, k, kernel, replayed_for_ms):
    tm, tn, tk, stages, warps = kernel
    a, b = (torch.randn(shape, device="cuda", dtype=torch.float16) for shape in ((m, k), (k, n)))
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    workgroups = triton.cdiv(m, tm) * triton.cdiv(n, tn)
    stamps = torch.zeros(workgroups * 4, device="cuda", dtype=torch.int64)

    def launch():
        gemm[(workgroups,)](
            a, b, c, stamps, m, n, k, tm, tn, tk, num_stages=stages, num_warps=warps)

    launch()
    reference = a.double() @ b.double()
    assert (c.double() - reference).norm() < 1e-2 * reference.norm()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        launch()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(3):
                launch()
        replays = max(3, int(replayed_for_ms * 1e3 / (2 * m * n * k / 300e12 * 3e6 + 30)))
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        times = []
        for _ in range(3):
            begin.record(stream)
            for _ in range(replays):
                graph.replay()
            end.record(stream)
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / replays / 3 * 1e3)
    read = stamps.cpu().view(-1, 4).double()
    spent, ns = read[:, 1] - read[:, 0], read[:, 3] - read[:, 2]
    print(m, n, k, tm, tn, tk, stages, warps, 1, replayed_for_ms, workgroups, triton.cdiv(k, tk),
          round(sorted(times)[1], 2), round(spent.median().item()),
          round((spent.sum() / ns.sum() * 1e3).item()), sep=",", flush=True)


if __name__ == "__main__":
    print("m,n,k,macro_tile_m,macro_tile_n,depth_u,stages,warps,split_k,replayed_for_ms,"
          "workgroups,steps,time_us,workgroup_cycles,clock_mhz")
    for ms in (3, 30, 400):
        for sizes in GEMMS:
            measure(*sizes, WIDE, ms)
    for sizes in GEMMS[1:8]:
        for kernel in NARROW:
            measure(*sizes, kernel, 30)
