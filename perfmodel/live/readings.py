"""Readings of a GPU, and the device file that they make."""

import statistics
from dataclasses import dataclass

from perfmodel.devices import UNITS, Source, gpu_from

#: Kernels tried for the matrix rate of each dtype.
MATRIX_KERNELS = {
    "fp16": [(128, 256, 64, 4, 8, 1), (128, 128, 64, 4, 4, 1)],
    "bf16": [(128, 256, 64, 4, 8, 1), (128, 128, 64, 4, 4, 1)],
    "tf32": [(128, 256, 32, 4, 8, 1), (128, 128, 32, 4, 4, 1)],
    "fp8": [(128, 256, 128, 4, 8, 1), (128, 128, 128, 4, 4, 1)],
    "int8": [(128, 256, 128, 4, 8, 1), (128, 128, 128, 4, 4, 1)],
}

#: Facts that no driver tells, by vendor; NVIDIA's hold from compute capability 7.0 on.
_RULES = {
    "nvidia": {
        "simds_per_compute_unit": 4,
        "register_allocation_unit": 256,
        "registers_per_thread_limit": 255,
        "lds_allocation_bytes": 128,
    },
    "amd": {
        "simds_per_compute_unit": 4,
    },
}
_RULE_SOURCES = {
    "nvidia": "CUDA C++ Programming Guide, compute capabilities; cuda_occupancy.h",
    "amd": "CDNA instruction set guides",
}

_ARCHITECTURES = {70: "volta", 75: "turing", 80: "ampere", 86: "ampere", 89: "ada", 90: "hopper",
                  100: "blackwell", 120: "blackwell"}


@dataclass(frozen=True)
class Reading:
    """A value read or measured.

    Attributes
    ----------
    value : float
        Median of the repeats, in the unit of its field.
    spread_pct : float or None
        Largest minus smallest repeat over the median [per cent]; None where it was read, not
        measured.
    source : str
    """

    value: float
    spread_pct: float | None
    source: str

    @classmethod
    def of(cls, repeats, source):
        """The median of repeats, with their spread."""
        median = statistics.median(repeats)
        return cls(median, round(100 * (max(repeats) - min(repeats)) / median, 2),
                   f"{source}; median of {len(repeats)}")

    def scaled(self, factor, source):
        """The value times a factor; the spread stays."""
        return Reading(self.value * factor, self.spread_pct, self.source + source)


def device_from(readings, identity, name, date):
    """A device of its readings.

    Parameters
    ----------
    readings : mapping of field name to Reading
    identity : mapping
        As `runner.GpuRunner.gpu` gives it.
    name : str
        Short name of the device.
    date : str
        Of the readings.

    Returns
    -------
    perfmodel.devices.Gpu
    """
    backend, target = identity["target"].split()
    vendor = "amd" if backend == "hip" else "nvidia"
    history = {
        field: [Source(value, "datasheet", _RULE_SOURCES[vendor], "recalled")]
        for field, value in _RULES[vendor].items()}
    for field, reading in readings.items():
        value = reading.value
        value = round(value) if _counts(field) else float(f"{value:.5g}")
        how = "read" if reading.spread_pct is None else "measured"
        history[field] = [Source(
            value, "measured", reading.source,
            f"{how} {date}, driver {identity['driver']}", reading.spread_pct)]
    texts = {"name": name, "title": identity["gpu"], "vendor": vendor,
             "architecture": _architecture(vendor, target)}
    return gpu_from(texts, history)


def _architecture(vendor, target):
    if vendor == "amd":
        return f"cdna {target}"
    return f"{_ARCHITECTURES.get(int(target), 'cuda')} sm_{target}"


def _counts(field):
    return UNITS[field] in ("1", "B")
