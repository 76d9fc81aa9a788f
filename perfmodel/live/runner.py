"""The runner on a real GPU: compiles, checks and times what it is asked for.

What uses a runner uses only `prepare`, `check`, `time`, `state` and `gpu`, so that
`recorded.Recorded` can stand in for it.
"""

import contextlib

import torch
import triton

from perfmodel.live import driver
from perfmodel.live.compiler import compile_ahead, resources_of
from perfmodel.live.graphs import Graphs, can_capture
from perfmodel.live.one_line import one_line
from perfmodel.live.operands import TOLERANCE, Operands, exact_product, relative_error
from perfmodel.live.triton_gemm import ALIGNMENT, Variant, compiled, constants_of


class GpuRunner:
    """The GPU that torch calls number 0.

    Parameters
    ----------
    seed : int
        Of the operands.
    captured : bool
        Whether branches are captured in graphs (`graphs.Graphs`); where that does not work,
        plain streams are used.
    """

    def __init__(self, seed=0, captured=True):
        properties = torch.cuda.get_device_properties(0)
        self.backend = "hip" if torch.version.hip else "cuda"
        architecture = (
            properties.gcnArchName.split(":")[0] if self.backend == "hip"
            else properties.major * 10 + properties.minor)
        self.target = (self.backend, architecture, properties.warp_size)
        self._operands = Operands(seed)
        self._graphs = Graphs(captured and can_capture())
        self._binaries = {}
        self._exact = (None, None, None)
        self._state = {}
        self._carveouts = {}
        torch.backends.cuda.matmul.allow_tf32 = True

    def gpu(self):
        """What identifies GPU and software, dict of str."""
        return {
            "gpu": torch.cuda.get_device_name(0),
            "target": " ".join(map(str, self.target[:2])),
            "driver": _driver_version(),
            "torch": torch.__version__,
            "triton": triton.__version__,
            "launched_by": "graph" if self._graphs.captured else "streams",
        }

    def readings(self, advance):
        """Readings of the GPU, dict of field to `readings.Reading`; `advance` is told each name."""
        from perfmodel.live.probe import readings_of

        return readings_of(self, advance)

    def prepare(self, kernels, gemms, setting, advance):
        """Compile kernels for all that the GEMMs ask of them, and report their resources.

        Parameters
        ----------
        kernels : list of tuple
        gemms : list of tuple
        setting : Setting
        advance : callable
            Called after each compilation.

        Returns
        -------
        resources : list of dict
            `compiler.resources_of`, of those that can run; compiled for the GEMM with the most
            sizes that `ALIGNMENT` divides.
        failed : dict of kernel to str
            The others, with the reason.
        """
        variants = list(dict.fromkeys(_variant(gemm, setting) for gemm in gemms))
        counts, failed = compile_ahead(
            [(kernel, variant) for variant in variants for kernel in kernels], self.target,
            advance)
        # Rows of others are measured, but the model knows only kernels with wide loads.
        best = max(variants, key=lambda variant: sum(variant.aligned))
        rows = []
        for kernel in kernels:
            if kernel in failed:
                continue
            try:
                # What fits as compiled for one GEMM need not for another.
                binaries = {variant: self._binary(kernel, variant) for variant in variants}
                rows.append(resources_of(kernel, binaries[best], best, self.target)
                            | counts[kernel, best])
            except Exception as error:  # Triton's own: more LDS or threads than there are
                failed[kernel] = one_line(error)
        return rows, failed

    def check(self, gemm, kernel, setting):
        """Why a kernel's result on fresh operands is wrong, str; empty if it is right."""
        self._operands.drop_others({gemm})
        with _memory_of_ours():
            return self._checked(gemm, kernel, setting)

    def _checked(self, gemm, kernel, setting):
        a, b = self._operands.of(gemm, setting, 0)
        result = self._operands.result(gemm, setting, 0, kernel[-1] > 1)
        # Where parts are added C starts from zero; elsewhere every element must be written.
        result.fill_(0 if kernel[-1] > 1 else _poison(result.dtype))
        self._triton(gemm, kernel, setting, 0)(torch.cuda.current_stream())
        error = relative_error(result, self._exact_product(gemm, setting, a, b))
        if error <= TOLERANCE[setting.dtype]:
            return ""
        return f"wrong result: relative error {error:.2g}, at most {TOLERANCE[setting.dtype]:g}"

    def time(self, branches, setting):
        """Time of an arrangement.

        Parameters
        ----------
        branches : tuple of tuple of arrangement.Launch
        setting : Setting

        Returns
        -------
        arrangement.Timing
        """
        self._operands.drop_others({launch.gemm for branch in branches for launch in branch})
        made = {}
        with _memory_of_ours():
            for branch in branches:
                for launch in branch:
                    if launch not in made:
                        made[launch] = self._launcher(launch, setting)
            torch.cuda.synchronize()  # the operands are drawn on another stream
            return self._graphs.timed(
                [[made[launch] for launch in branch] for branch in branches], setting.cold,
                self._sample)

    def _exact_product(self, gemm, setting, a, b):
        # The kernels of one GEMM are checked one after the other: the last product is enough.
        key = (gemm, setting.dtype, setting.transposed_b)
        if self._exact[0] != key or self._exact[1] is not a:
            self._exact = (key, a, exact_product(a, b))
        return self._exact[2]

    def state(self):
        """What belongs to the last timing besides its time, dict.

        Clock [MHz], power [W] and temperature [degree C] while at work, as far as they are known.
        """
        return self._state

    def _sample(self):
        self._state = telemetry()

    def _launcher(self, launch, setting):
        if launch.kernel is None:
            library = self._library(launch.gemm, setting, launch.operands)
            library(None)  # it must not load or allocate anything while a graph is captured
            return library
        return self._triton(launch.gemm, launch.kernel, setting, launch.operands)

    def _triton(self, gemm, kernel, setting, number):
        m, n, k, batch = gemm
        variant = _variant(gemm, setting)
        binary = self._binary(kernel, variant)
        self._set_carveout(kernel, variant, binary, setting.carveout_pct)
        a, b = self._operands.of(gemm, setting, number)
        c = self._operands.result(gemm, setting, number, kernel[-1] > 1)
        tiles = -(-m // kernel[0]) * -(-n // kernel[1])
        bound = binary[(tiles, kernel[-1], batch)]
        arguments = (a, b, c, m, n, k, *constants_of(kernel, variant))
        return lambda stream: bound(*arguments, stream=stream.cuda_stream)

    def _binary(self, kernel, variant):
        if (kernel, variant) not in self._binaries:
            binary = compiled(kernel, variant, self.target)
            binary.run  # loads it
            self._binaries[kernel, variant] = binary
        return self._binaries[kernel, variant]

    def _set_carveout(self, kernel, variant, binary, percent):
        if self._carveouts.get((kernel, variant), -1) != percent:
            driver.set_carveout(self.backend, binary.function, percent)
            self._carveouts[kernel, variant] = percent

    def _library(self, gemm, setting, number):
        a, b = self._operands.of(gemm, setting, number)
        c = self._operands.result(gemm, setting, number, split=False)
        if setting.dtype == "int8":
            return _on_stream(lambda: torch._int_mm(a, b, out=c))
        if setting.dtype == "fp8":
            one = torch.ones((), device="cuda")
            return _on_stream(lambda: torch._scaled_mm(
                a, b, scale_a=one, scale_b=one, out_dtype=c.dtype, use_fast_accum=True, out=c))
        return _on_stream(lambda: torch.matmul(a, b, out=c))


@contextlib.contextmanager
def _memory_of_ours():
    """Context manager: too little memory is Python's own error, which others know without torch."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MemoryError(str(error)) from error


def telemetry():
    """Clock [MHz], power [W] and temperature [degree C] now, dict; without what nobody can tell."""
    # torch gives what its library says: NVML milliwatts, AMD SMI watts.
    watts = 1 if torch.version.hip else 1e-3
    asked = {
        "clock_mhz": torch.cuda.clock_rate,
        "power_w": lambda: round(torch.cuda.power_draw() * watts),
        "temperature_c": torch.cuda.temperature,
    }
    found = {}
    for name, ask in asked.items():
        # Missing library, lacking right, unsupported query: each library has errors of its own.
        with contextlib.suppress(Exception):
            found[name] = ask()
    return {name: value for name, value in found.items() if value}


def _variant(gemm, setting):
    aligned = tuple(size % ALIGNMENT == 0 for size in gemm[:3])
    return Variant(setting.dtype, setting.transposed_b, gemm[3] > 1, aligned)


def _on_stream(launch):
    # The launcher's caller has made the stream the current one.
    return lambda stream: launch()


def _poison(dtype):
    return float("nan") if dtype.is_floating_point else -(2**30)


def _driver_version():
    if torch.version.hip:
        return f"HIP {torch.version.hip}"
    try:
        import pynvml

        pynvml.nvmlInit()
        return f"{pynvml.nvmlSystemGetDriverVersion()}, CUDA {torch.version.cuda}"
    except Exception:  # no such module, or its NVMLError: no driver library, no right to ask
        return f"CUDA {torch.version.cuda}"
