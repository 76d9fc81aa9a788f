"""The fitted parameters of the GPU model: name, unit, meaning, and the bounds a fit keeps."""

from dataclasses import dataclass

from perfmodel.checks import one_of, refusal
from perfmodel.devices import replace_fields, with_fit

#: A fact that belongs to the design of a compute unit, as the fitted parameters do, and that few
#: documents give.
PORT = "l2_bytes_per_clock_per_compute_unit"


@dataclass(frozen=True)
class Parameter:
    """One fitted parameter.

    Attributes
    ----------
    unit : str
    start : float
        Where a fit begins.
    lower, upper : float
        Bounds: beyond them the value is not physical.
    meaning : str
    """

    unit: str
    start: float
    lower: float
    upper: float
    meaning: str


#: Every fitted parameter. Cycles are of the peak clock.
PARAMETERS = {
    "launch_gap_s": Parameter("s", 1.3e-6, 1e-7, 1e-5, "launch to launch on one branch"),
    "workgroup_start_clk": Parameter("clk", 1500, 100, 1e4, "start and end of a workgroup"),
    "wide_start_clk": Parameter(
        "clk", 700, 1, 1e4, "more for each 4 wavefronts beyond 4; the compute unit waits"),
    "load_latency_clk": Parameter("clk", 400, 100, 2000, "a load that hits L2, idle chip"),
    "miss_latency_share": Parameter("1", 1.2, 0.01, 5, "more latency when a load misses L2"),
    "loaded_latency_share": Parameter("1", 0.4, 0.01, 5, "more latency when the chip is full"),
    "lds_bytes_per_clk": Parameter(
        "B/clk", 75, 16, 128, "rate at which a matrix unit reads LDS, of one compute unit"),
    "matrix_efficiency": Parameter("1", 0.88, 0.2, 1, "sustained share of the peak matrix rate"),
    "serialised_share": Parameter(
        "1", 0.6, 0.01, 3, "more matrix time when each instruction is waited for"),
    "row_request_bytes": Parameter("B", 35, 0.1, 128, "port time of a request for a row of A"),
    "straddled_line_bytes": Parameter("B", 40, 0.1, 128, "port time of a line asked for twice"),
    "overlap_exponent": Parameter(
        "1", 3, 1, 20, "how well two stages overlap loading and multiplying"),
    "pipeline_fill_share": Parameter("1", 0.45, 0.01, 1, "exposed part of filling the stages"),
    "store_bytes_per_clk": Parameter("B/clk", 28, 1, 64, "stores of one compute unit"),
    "atomic_bytes_per_clk": Parameter("B/clk", 19, 1, 64, "fp32 additions of one compute unit"),
    "shuffle_exponent": Parameter("1", 0.18, 0.001, 2, "how branches lose lock-step, c^-p"),
    "tail_share": Parameter("1", 0.6, 0.01, 1, "exposed part of the last wave of all"),
    "fullest_share": Parameter("1", 0.6, 0.01, 1, "how the fullest compute unit sets the pace"),
    "branch_start_s": Parameter("s", 1.3e-6, 1e-8, 1e-5, "delay of starting a branch"),
    "swept_start_share": Parameter(
        "1", 0.4, 0.01, 5, "more delay of a start when operands overflow L2"),
    "cold_start_share": Parameter("1", 1.2, 0.01, 5, "more delay of a start when L2 is empty"),
    "exposed_start_share": Parameter("1", 0.3, 0.01, 1, "start that a full chip does not hide"),
    "stagger_share": Parameter("1", 0.65, 0.01, 3, "residents lost while branches start"),
    "l2_capacity_share": Parameter("1", 0.53, 0.1, 1, "share of L2 that keeps operands"),
    "clock_drop_share": Parameter(
        "1", 0.7, 0.01, 2, "most that the power limit stretches matrix work"),
    "clock_drop_flop": Parameter("FLOP", 25e9, 1e8, 1e12, "launch at half of that"),
    "graph_start_s": Parameter("s", 1.5e-6, 1e-8, 1e-5, "more for the first launch of a graph"),
    "graph_interval_s": Parameter(
        "s", 5.5e-6, 1e-7, 1e-4, "least time from replay to replay of a graph of one branch"),
    "member_start_s": Parameter(
        "s", 0.35e-6, 1e-8, 1e-5, "what each further branch of different GEMMs adds"),
    "member_clock_drop_share": Parameter(
        "1", 0.15, 0.001, 2, "clock_drop_share of single launches, where load does not last"),
}


def start_values():
    """Where a fit begins, dict of name to value.

    Examples
    --------
    >>> start_values()["load_latency_clk"]
    400
    """
    return {name: parameter.start for name, parameter in PARAMETERS.items()}


def values_of(device):
    """Fitted values of a device, dict of name to value.

    Parameters
    ----------
    device : Gpu

    Raises
    ------
    ValueError
        If the device has none, or some are missing.
    """
    for name in device.fitted:
        one_of("fitted parameter", name, tuple(PARAMETERS), device.name)
    missing = [name for name in PARAMETERS if name not in device.fitted]
    if missing:
        shown = "no fitted parameters" if len(missing) == len(PARAMETERS) else (
            f"no fitted {', '.join(missing)}")
        raise ValueError(
            f"{device.name}: {shown}: calibrate it (perfmodel calibrate FILE --device"
            f" {device.name} -o NEW.toml), or take another chip's, uncalibrated"
            " (--parameters-from h200)"
        )
    return checked({name: found.value for name, found in device.fitted.items()}, device.name)


def checked(values, where):
    """The values of all parameters, if each lies within its bounds.

    Parameters
    ----------
    values : mapping of parameter name to float
    where : str
        For messages.

    Raises
    ------
    ValueError
        If a name is unknown or missing, or a value is beyond the bounds of `PARAMETERS`.
    """
    for name in values:
        one_of("fitted parameter", name, tuple(PARAMETERS), where)
    for name, parameter in PARAMETERS.items():
        if name not in values:
            raise ValueError(f"{where}: no fitted {name}")
        if not parameter.lower <= values[name] <= parameter.upper:
            rule = f"from {parameter.lower:g} to {parameter.upper:g}"
            raise refusal(f"fitted {name}", rule, values[name], where)
    return dict(values)


def borrowed(device, donor):
    """The device with another's fitted parameters: a guess at its times, not a calibration.

    Parameters
    ----------
    device : Gpu
    donor : Gpu
        Its L2 port rate is taken too, marked as assumed, if the device's is not known.

    Returns
    -------
    Gpu
        Its `fit` names the donor and keeps the calibrated range; it states no interval.

    Raises
    ------
    ValueError
        If the donor has no fitted parameters.

    Examples
    --------
    >>> from perfmodel.device_files import load_device
    >>> borrowed(load_device("a100-80gb"), load_device("h200")).fit["borrowed_from"]
    'h200'
    """
    values_of(donor)
    if not device.has(PORT):
        device = replace_fields(device, {PORT: getattr(donor, PORT)})
    kept = {name: donor.fit[name] for name in ("ranges", "dtypes") if name in donor.fit}
    return with_fit(device, donor.fitted, {"borrowed_from": donor.name} | kept)
