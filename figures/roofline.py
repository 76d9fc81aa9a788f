"""How close the best kernels come to the limits of the chip, alone and sixteen at once."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from perfmodel.equations import roofline
from perfmodel.figures.measured import DTYPE, MEASURED, MODELLED, SOURCES, grid, long_table
from perfmodel.plotting import COLOURS, GREY, MARKERS, PAGE_WIDTH, log_axis, style
from perfmodel.units import US

TITLE = "Roofline of the H200, fp16"
CAPTION = (
    "Rate of each of 195 GEMMs with its fastest kernel, alone and sixteen copies at once (all "
    "their operations over the time of all), against its arithmetic intensity: operations over "
    "the bytes of A, B and C, each once. Measured: the fastest of 58 kernels by measured time. "
    "Modelled: the fastest by modelled time, at its modelled time, with parameters fitted without "
    "that GEMM. Roofs: the datasheet's matrix peak at peak clock, and rates that we measured as "
    "sustained from HBM and from L2. Replays leave operands in L2, so a point may lie above the "
    "HBM roof."
)

_DEGREES = (1, 16)

#: Ends of the axis of intensity [FLOP/B].
_INTENSITY = (25.0, 1500.0)


def compute():
    """Rate and intensity of each GEMM, one row a source, GEMM and degree, DataFrame."""
    data = grid()
    element = data.gemms.bytes_per_element
    sizes = (data.gemms.m, data.gemms.n, data.gemms.k, data.gemms.batch)
    flop = data.gemms.flop
    intensity = roofline.arithmetic_intensity(flop, roofline.gemm_bytes(*sizes, element, element))
    parts = []
    for source in SOURCES:
        seconds = data.seconds_of(source, data.go_kernel(source))
        parts.append(long_table(data.gemms, data.degrees, {
            "source": source,
            "intensity_flop_per_byte": intensity[:, None],
            "time_us": seconds / US,
            "rate_tflop_per_s": data.degrees * flop[:, None] / seconds / 1e12,
        }))
    table = pd.concat(parts, ignore_index=True)
    return table[table["concurrency_degree"].isin(_DEGREES)].reset_index(drop=True)


@style()
def draw(table):
    """Two panels, alone and sixteen at once.

    Parameters
    ----------
    table : DataFrame
        From `compute`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = Figure(figsize=(PAGE_WIDTH, 3.3))
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, degree in zip(panels, _DEGREES):
        _draw_roofs(axes)
        rows = table[table["concurrency_degree"] == degree]
        for source in SOURCES:
            points = rows[rows["source"] == source]
            axes.plot(
                points["intensity_flop_per_byte"], points["rate_tflop_per_s"], MARKERS[source],
                color=COLOURS[source], markersize=3.2, markeredgewidth=0.7, label=source,
                markerfacecolor="none" if source == MODELLED else COLOURS[MEASURED],
                alpha=0.75 if source == MEASURED else 1.0,
            )
        axes.set_title("alone" if degree == 1 else f"{degree} copies at once, all together")
        axes.set_xlabel("arithmetic intensity [FLOP/B]")
    panels[0].set_ylabel("rate [TFLOP/s]")
    panels[0].legend(loc="lower right")
    figure.draw_without_rendering()
    for axes in panels:
        _name_roofs(axes)
    return figure


def _draw_roofs(axes):
    device = grid().device
    peak = device.compute_units * device.clock_hz * device.matrix_rate(DTYPE)
    low, high = _INTENSITY
    axes.set(xscale="log", yscale="log", xlim=_INTENSITY, ylim=(5, 2000))
    log_axis(axes.xaxis, numbers=(30, 100, 300, 1000))
    log_axis(axes.yaxis)
    for bytes_per_s, line in ((device.hbm_bytes_per_s, "-"), (device.l2_bytes_per_s, "--")):
        intensity = np.array([low, peak / bytes_per_s])
        axes.plot(intensity, intensity * bytes_per_s / 1e12, line, color=GREY, linewidth=1.0)
    axes.plot([peak / device.l2_bytes_per_s, high], [peak / 1e12] * 2, color=GREY, linewidth=1.0)


def _name_roofs(axes):
    """Names along the roofs; after the layout is settled, for it decides their slope."""
    device = grid().device
    peak = device.compute_units * device.clock_hz * device.matrix_rate(DTYPE)
    low, high = _INTENSITY
    text = {"color": GREY, "fontsize": 7, "textcoords": "offset points"}
    axes.annotate(f"matrix peak {peak / 1e12:.0f} TFLOP/s", (high, peak / 1e12), (-4, 3),
                  ha="right", **text)
    lower = f"HBM {device.hbm_bytes_per_s / 1e12:.1f} TB/s", device.hbm_bytes_per_s, "top", -2
    upper = f"L2 {device.l2_bytes_per_s / 1e12:.1f} TB/s", device.l2_bytes_per_s, "bottom", 1
    for name, bytes_per_s, side, shift in (lower, upper):
        ends = axes.transData.transform([(x, x * bytes_per_s / 1e12) for x in (low, 10 * low)])
        slope_deg = np.degrees(np.arctan2(*(ends[1] - ends[0])[::-1]))
        at = 1.1 * low
        axes.annotate(name, (at, at * bytes_per_s / 1e12), (0, shift), rotation=slope_deg,
                      rotation_mode="anchor", va=side, **text)
