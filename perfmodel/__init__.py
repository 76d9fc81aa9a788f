"""Closed-form models of what happens when deep-learning operators share a chip.

Glossary: every symbol of the public parameters, its name and its unit. NVIDIA's words, where they
differ, are in the last column; code and data use AMD's and OpenCL's.

====================  ==============================================  ========  =================
name                  meaning                                         unit      NVIDIA says
====================  ==============================================  ========  =================
m, n, k               sides of a GEMM, C[m, n] = A[m, k] B[k, n]      elements
batch                 independent copies of the GEMM in one launch    1
dtype                 type of the operands (accumulation is wider)    text
macro_tile_m          rows of C one workgroup computes                elements  CTA tile M
macro_tile_n          columns of C one workgroup computes             elements  CTA tile N
depth_u               slice of k loaded per step of the main loop     elements  CTA tile K
stages                slices in LDS: one in use, the others coming    1         pipeline stages
warps                 wavefronts of one workgroup                     1         warps
split_k               workgroups sharing a tile of C, each part of k  1         split-K
workgroup             threads that share one compute unit's LDS       1         thread block, CTA
wavefront             threads issued together, 32 or 64; not a wave   1         warp
wave                  round of dispatch: as many workgroups as fit    1         wave
compute_unit          the unit workgroups are dispatched to           1         SM
lds                   scratchpad of a compute unit                    B         shared memory
register              32-bit register of a thread                     1         register
occupancy             workgroups (or wavefronts) on a compute unit    1         occupancy
concurrency_degree    GEMMs running at the same time                  1         streams in use
rounds                launches back to back on each branch            1         graph nodes
waiting               equal GEMMs to be run, some at a time           1
arithmetic_intensity  operations per byte of HBM traffic              FLOP/B
isolated_time         time of a GEMM that has the chip to itself      s
concurrent_time       time until all GEMMs run together have ended    s
over_sequential       sum of isolated times over concurrent time      1
default concurrency   each GEMM keeps its best kernel in isolation
GO-Kernel             best kernel at a given concurrency degree
regret                time of the kernel picked over the best's       1
====================  ==============================================  ========  =================

Inside the package all is SI: seconds, bytes, FLOP, hertz. Data columns and TOML keys end in their
unit. Arrays run over (device, problem, kernel, degree), in this order.
"""

from importlib import import_module
from pathlib import Path

_HERE = Path(__file__).resolve().parent
if not (_HERE / "figures").is_dir():
    # In a checkout that is not installed figures/ lies beside the package, not in it.
    __path__.append(str(_HERE.parent))

__version__ = "0.1.0"

__all__ = ["device_names", "load_device", "parse_gemm"]

# Imported at first use, so that `import perfmodel` stays quick.
_HOMES = {
    "device_names": "perfmodel.device_files",
    "load_device": "perfmodel.device_files",
    "parse_gemm": "perfmodel.problems",
}


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__():
    return sorted([*globals(), *_HOMES])
