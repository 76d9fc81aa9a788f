"""Kernels compiled side by side, and what the compiler and the driver say of each."""

import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import tempfile
from concurrent.futures.process import BrokenProcessPool

from triton import knobs

from perfmodel.gpu.kernels import KERNEL
from perfmodel.live import driver
from perfmodel.live.machine_code import COUNTS, loop_counts
from perfmodel.live.one_line import one_line
from perfmodel.live.triton_gemm import compiled


def compile_ahead(wanted, target, advance):
    """Compile kernels into Triton's cache, one process a core.

    Parameters
    ----------
    wanted : list of (kernel, triton_gemm.Variant)
    target : tuple
        As `triton_gemm.compiled` takes it.
    advance : callable
        Called with no argument after each.

    Returns
    -------
    counts : dict of (kernel, triton_gemm.Variant) to dict
        `machine_code.COUNTS`; None where there is no disassembler or no loop.
    failed : dict of kernel to str
        Those that did not compile, each with the reason in one line.
    """
    found = _side_by_side(wanted, target, advance)
    # One that takes its process down breaks all that were under way: each of those by itself.
    broken = [one for one in wanted if one not in found]
    with concurrent.futures.ThreadPoolExecutor(_workers(broken)) as threads:
        again = [threads.submit(_side_by_side, [one], target, advance) for one in broken]
    for job in again:
        found |= job.result()
    counts, failed = {}, {}
    for one in wanted:
        answer = found.get(one, "the compiler died")
        if isinstance(answer, str):
            failed[one[0]] = answer
        else:
            counts[one] = answer
    return counts, failed


def _side_by_side(wanted, target, advance):
    """Answers of `_counts_of` by (kernel, variant), without those whose process died."""
    # A fresh process: one forked from a parent that uses the GPU could not go on with it.
    pool = concurrent.futures.ProcessPoolExecutor(
        _workers(wanted), mp_context=multiprocessing.get_context("spawn"),
        initializer=_leave_interrupts_to_parent)
    found = {}
    try:
        jobs = {pool.submit(_counts_of, *one, target): one for one in wanted}
        for job in concurrent.futures.as_completed(jobs):
            found[jobs[job]] = job.result()
            advance()
    except BrokenProcessPool:
        pass
    finally:
        pool.shutdown(cancel_futures=True)
    return found


def _workers(wanted):
    return max(1, min(len(wanted), os.cpu_count() or 1))


def _leave_interrupts_to_parent():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _counts_of(kernel, variant, target):
    """The counts of a kernel, dict, or in one line why it does not compile, str."""
    try:
        binary = compiled(kernel, variant, target)
        text = _disassembly(binary, target[0])
    except Exception as error:  # whatever Triton, LLVM or the assembler raises
        return one_line(error)
    found = loop_counts(text, target[0]) if text else {}
    return {name: found.get(name) for name in COUNTS}


def resources_of(kernel, binary, variant, target):
    """What the compiler and the driver report of a kernel, a row of a kernel table.

    Parameters
    ----------
    kernel : tuple of int
    binary : triton.compiler.CompiledKernel
        Loaded on the GPU.
    variant : triton_gemm.Variant
    target : tuple

    Returns
    -------
    dict
        ``dtype``, `KERNEL`, and the columns of a kernel table that are not counts.
    """
    backend, _, width = target
    binary.run  # loads it: only then are the registers known
    row = {"dtype": variant.dtype, **dict(zip(KERNEL, kernel))}
    return row | {
        "registers_per_thread": binary.n_regs,
        "register_spills": binary.n_spills,
        "lds_bytes": binary.metadata.shared,
        "workgroups_per_cu": driver.workgroups_per_cu(
            backend, binary.function, binary.metadata.num_warps * width, binary.metadata.shared),
    }


def _disassembly(binary, backend):
    if backend == "hip":
        return binary.asm["amdgcn"]
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary.asm["cubin"])
        file.flush()
        try:
            command = [knobs.nvidia.nvdisasm.path, "-c", file.name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except (OSError, RuntimeError):  # Triton's where it has no disassembler
            return ""
    return done.stdout
