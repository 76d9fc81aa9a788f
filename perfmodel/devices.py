"""Records of devices: what is known of a chip, in which unit, and from where."""

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from perfmodel.checks import one_of, refusal

VENDORS = ("nvidia", "amd")

#: Kinds of a value, by which the tables of a device file are named; a later one replaces an
#: earlier one's.
KINDS = ("datasheet", "measured", "assumed")

#: What identifies a device.
TEXTS = ("name", "title", "vendor", "architecture")


@dataclass(frozen=True)
class Source:
    """Where the value of a field comes from.

    Attributes
    ----------
    value : int or float
        The value, in the unit of its field.
    kind : str
        One of `KINDS`: published, measured by us, or assumed (a what-if).
    source : str
        Document and table, or data file.
    checked : str
        What was really read: ``recalled`` means that no document was at hand.
    spread_pct : float or None
        Of a measured value: largest minus smallest repeat over the median [per cent].
    """

    value: float
    kind: str
    source: str
    checked: str
    spread_pct: float | None = None


@dataclass(frozen=True)
class Fitted:
    """A parameter fitted to measurements: value, standard error, and the unit of both."""

    value: float
    standard_error: float
    unit: str


def _count(unit="1", minimum=1):
    return field(default=None, metadata={"unit": unit, "type": int, "minimum": minimum})


def _rate(unit):
    return field(default=None, metadata={"unit": unit, "type": float})


@dataclass(frozen=True, eq=False, repr=False)
class Gpu:
    """A GPU. Reading a field that its file leaves out raises `ValueError`: nothing is guessed.

    Attributes
    ----------
    name, title, vendor, architecture : str
        Short name, product name, one of `VENDORS`, and architecture with its compiler target.
    compute_units, simds_per_compute_unit, threads_per_wavefront : int
    clock_hz : float
        Peak clock [Hz].
    wavefronts_per_compute_unit, workgroups_per_compute_unit : int
        Most that can be resident.
    threads_per_workgroup_limit : int
    registers_per_compute_unit, register_allocation_unit, registers_per_thread_limit : int
        32-bit registers; the unit is what a wavefront's registers are rounded up to.
    lds_bytes_per_compute_unit, lds_bytes_per_workgroup_limit : int
        Scratchpad (shared memory), and the most one workgroup may ask for [B].
    lds_reserve_bytes_per_workgroup, lds_allocation_bytes : int
        What the system adds for each workgroup, and what the sum is rounded up to [B].
    lds_bytes_per_clock_per_compute_unit, l2_bytes_per_clock_per_compute_unit : float
        Rates of the scratchpad and of the port to L2 [B/clk].
    l2_bytes, hbm_bytes : int
        Sizes [B].
    l2_bytes_per_s, hbm_bytes_per_s : float
        Rates of the whole chip [B/s].
    kernel_gap_s, graph_branch_s : float
        What one more of the smallest kernels costs in a graph: after another, and on one more
        branch [s].
    matrix_fp64_flop_per_clock_per_compute_unit, … : float
        Dense matrix rate by dtype (fp64, fp32, tf32, fp16, bf16, fp8, int8) [FLOP/clk].
    vector_fp32_flop_per_clock_per_compute_unit : float
        [FLOP/clk]
    sources : mapping of field name to Source
        For each known field, where the value in force comes from.
    superseded : mapping of field name to tuple of Source
        Values that a later kind replaced: the datasheet's, where one was measured.
    fitted : mapping of parameter name to Fitted
    fit : mapping
        Provenance of `fitted`: files, rows, date, parameters of each fold.
    """

    name: str
    title: str
    vendor: str
    architecture: str
    compute_units: int = _count()
    clock_hz: float = _rate("Hz")
    simds_per_compute_unit: int = _count()
    threads_per_wavefront: int = _count()
    wavefronts_per_compute_unit: int = _count()
    workgroups_per_compute_unit: int = _count()
    threads_per_workgroup_limit: int = _count()
    registers_per_compute_unit: int = _count()
    register_allocation_unit: int = _count()
    registers_per_thread_limit: int = _count()
    lds_bytes_per_compute_unit: int = _count("B")
    lds_bytes_per_workgroup_limit: int = _count("B")
    lds_reserve_bytes_per_workgroup: int = _count("B", minimum=0)
    lds_allocation_bytes: int = _count("B")
    lds_bytes_per_clock_per_compute_unit: float = _rate("B/clk")
    l2_bytes: int = _count("B")
    l2_bytes_per_clock_per_compute_unit: float = _rate("B/clk")
    l2_bytes_per_s: float = _rate("B/s")
    hbm_bytes: int = _count("B")
    hbm_bytes_per_s: float = _rate("B/s")
    kernel_gap_s: float = _rate("s")
    graph_branch_s: float = _rate("s")
    matrix_fp64_flop_per_clock_per_compute_unit: float = _rate("FLOP/clk")
    matrix_fp32_flop_per_clock_per_compute_unit: float = _rate("FLOP/clk")
    matrix_tf32_flop_per_clock_per_compute_unit: float = _rate("FLOP/clk")
    matrix_fp16_flop_per_clock_per_compute_unit: float = _rate("FLOP/clk")
    matrix_bf16_flop_per_clock_per_compute_unit: float = _rate("FLOP/clk")
    matrix_fp8_flop_per_clock_per_compute_unit: float = _rate("FLOP/clk")
    matrix_int8_flop_per_clock_per_compute_unit: float = _rate("FLOP/clk")
    vector_fp32_flop_per_clock_per_compute_unit: float = _rate("FLOP/clk")
    sources: Mapping = field(default_factory=dict)
    superseded: Mapping = field(default_factory=dict)
    fitted: Mapping = field(default_factory=dict)
    fit: Mapping = field(default_factory=dict)

    def __getattribute__(self, attribute):
        value = object.__getattribute__(self, attribute)
        if value is None and attribute in UNITS:
            raise ValueError(
                f"{self.name}: {attribute} is not known: its device file leaves it out"
                " (add it in a device file of your own)"
            )
        return value

    # The dataclass's own would read the fields that are not known.
    def __eq__(self, other):
        return vars(self) == vars(other) if isinstance(other, Gpu) else NotImplemented

    def __hash__(self):
        return hash((Gpu, self.name))

    def __repr__(self):
        return f"<Gpu {self.name}: {self.title}>"

    def has(self, quantity):
        """Whether the value of a field is known."""
        return vars(self)[quantity] is not None

    @property
    def matrix_flop_per_clock_per_compute_unit(self):
        """Matrix rates that are known, dict of dtype to rate [FLOP/clk]."""
        rates = {name.split("_")[1]: name for name in UNITS if name.startswith("matrix_")}
        return {dtype: getattr(self, name) for dtype, name in rates.items() if self.has(name)}

    def matrix_rate(self, dtype):
        """Dense matrix rate of one compute unit for a dtype [FLOP/clk].

        Parameters
        ----------
        dtype : str

        Raises
        ------
        ValueError
            If the device has no such matrix rate, or it is not known; lists those it has.

        Examples
        --------
        >>> from perfmodel.device_files import load_device
        >>> load_device("v100").matrix_rate("fp16")
        1024.0
        """
        rates = self.matrix_flop_per_clock_per_compute_unit
        if dtype not in rates:
            has = ", ".join(rates) or "none"
            raise ValueError(f"{self.name}: no matrix rate is known for {dtype} (known: {has})")
        return rates[dtype]


#: Unit of each field that a device file may give a value for.
UNITS = MappingProxyType({f.name: f.metadata["unit"] for f in fields(Gpu) if f.metadata})

#: Beyond it floats no longer count every integer.
_LARGEST_COUNT = 2**53

_METADATA = {f.name: f.metadata for f in fields(Gpu) if f.metadata}


def replace_fields(device, changes):
    """The device with other values in some fields, marked as assumed: for what-if studies.

    Parameters
    ----------
    device : Gpu
    changes : mapping of field name to int or float

    Returns
    -------
    Gpu

    Raises
    ------
    ValueError
        If a field name is unknown (lists the valid ones) or a value breaks its field's rule.

    Examples
    --------
    >>> from perfmodel.device_files import load_device
    >>> replace_fields(load_device("h200"), {"compute_units": 66}).compute_units
    66
    """
    history = history_of(device)
    for key, value in changes.items():
        value = checked_value(key, value, device.name)
        earlier = [source for source in history.get(key, []) if source.kind != "assumed"]
        history[key] = [*earlier, Source(value, "assumed", "what-if", "assumed")]
    texts = {key: getattr(device, key) for key in TEXTS}
    return gpu_from(texts, history, device.fitted, device.fit)


def with_fit(device, fitted, fit):
    """The device with other fitted parameters and their provenance.

    Parameters
    ----------
    device : Gpu
    fitted : mapping of parameter name to Fitted
    fit : mapping
        What TOML can hold: text, numbers, lists, and mappings of these.

    Returns
    -------
    Gpu
    """
    texts = {key: getattr(device, key) for key in TEXTS}
    return gpu_from(texts, history_of(device), fitted, fit)


def gpu_from(texts, history, fitted=MappingProxyType({}), fit=MappingProxyType({})):
    """Device from the sources of its values; the last source of a field is in force.

    Parameters
    ----------
    texts : mapping
        The four of `TEXTS`.
    history : mapping of field name to sequence of Source
        In the order of `KINDS`.
    fitted : mapping of parameter name to Fitted, optional
    fit : mapping, optional

    Returns
    -------
    Gpu
    """
    sources = {key: row[-1] for key, row in history.items()}
    superseded = {key: tuple(row[:-1]) for key, row in history.items() if len(row) > 1}
    values = {key: source.value for key, source in sources.items()}
    origins = {"sources": sources, "superseded": superseded}
    return Gpu(**texts, **values, **origins, fitted=dict(fitted), fit=dict(fit))


def history_of(device):
    """All sources of each known field, the one in force last: dict of name to list of Source."""
    return {
        key: [*device.superseded.get(key, ()), source] for key, source in device.sources.items()
    }


def checked_value(key, value, where):
    """The value of a field as int or float, if it keeps the field's rule.

    Parameters
    ----------
    key : str
        Name of the field.
    value : int or float
        In the unit of the field (`UNITS`).
    where : str
        File or device, for the message.

    Raises
    ------
    ValueError
        If there is no such field (lists the valid ones), a count is not a whole number or too
        small, or a rate is not a finite number above 0.

    Examples
    --------
    >>> checked_value("clock_hz", 1980000000, "h200")
    1980000000.0
    """
    one_of("field", key, tuple(UNITS), where)
    metadata = _METADATA[key]
    if metadata["type"] is int:
        minimum = metadata["minimum"]
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not whole or not minimum <= value <= _LARGEST_COUNT:
            raise refusal(key, f"an integer of at least {minimum}", value, where)
        return int(value)
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:
        raise refusal(key, f"a finite number above 0 [{metadata['unit']}]", value, where)
    return float(value)
