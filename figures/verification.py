"""What the model's picks were worth on the GPU, on GEMMs that no fit had seen."""

import numpy as np
from matplotlib.figure import Figure

from perfmodel.device_files import load_device
from perfmodel.equations.metrics import geometric_mean
from perfmodel.measurements.policies import policies
from perfmodel.measurements.table import read_waiting
from perfmodel.plotting import COLOURS, GREY, MARKERS, PAGE_WIDTH, log_axis, style
from perfmodel.resources import data_path

TITLE = "The model's picks, run on GEMMs that it had never seen"
CAPTION = (
    "Random GEMMs, drawn afresh: the model has not seen the GEMM in any fit. 16 equal ones wait, "
    "each with its own operands, on an NVIDIA H200. Left, measured times only (every one of 58 "
    "kernels was run at every degree, so the best is known): speed-up over one after the other "
    "with the kernel that is fastest so. Default: all at once with that kernel; library: all at "
    "once with cuBLAS; GO: all at once with the kernel that the model takes for fastest so; GO + "
    "degree: kernel and degree as the model chooses them; best: fastest kernel and degree "
    "measured. Box: middle half; bar: median; number and marker: geometric mean. Right: time that "
    "the model predicted for its pick of kernel and degree against the time measured; dashed: 8 % "
    "off."
)

_DEVICE = "h200"

_LABELS = {
    "default": ("default", "default"),
    "library": ("library", "sequential"),
    "go": ("GO", "go"),
    "dynamic": ("GO +\ndegree", "modelled pick"),
    "best": ("best", "measured"),
}


def compute():
    """Measured time of each policy for each GEMM, DataFrame as `policies.policies` gives it."""
    table = read_waiting(data_path("measurements", _DEVICE, "verify.csv.gz"))
    return policies(table, load_device(_DEVICE))


@style()
def draw(table):
    """A row of two panels for each number waiting and rounds.

    Parameters
    ----------
    table : DataFrame
        From `compute`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    protocols = list(table.groupby(["waiting", "rounds"]))
    figure = Figure(figsize=(PAGE_WIDTH, 2.6 * len(protocols)))
    panels = figure.subplots(len(protocols), 2, squeeze=False, width_ratios=(3, 2))
    for (left, right), ((waiting, rounds), rows) in zip(panels, protocols):
        often = "run once" if rounds == 1 else f"{rounds} times over"
        left.set_title(f"{waiting} waiting, {often}: {len(rows)} GEMMs", loc="left")
        _draw_speed_ups(left, rows)
        _draw_predictions(right, rows)
    return figure


def _draw_speed_ups(axes, rows):
    axes.axhline(1, color="black", linewidth=0.8)
    for place, (policy, (_, meaning)) in enumerate(_LABELS.items()):
        gain = (rows["measured_sequential_us"] / rows[f"measured_{policy}_us"]).dropna().to_numpy()
        if not len(gain):
            continue
        colour = COLOURS[meaning]
        # Spread by rank in a fixed order: no random jitter, so the same picture each time.
        spread = (np.arange(len(gain)) * 0.618034 % 1 - 0.5) * 0.3
        axes.plot(place - 0.2 + spread, gain, ".", color=colour, markersize=3, alpha=0.5,
                  markeredgewidth=0)
        box = axes.boxplot([gain], positions=[place + 0.16], widths=0.16, whis=(5, 95),
                           showfliers=False, showcaps=False, patch_artist=True,
                           manage_ticks=False, medianprops={"color": "black", "linewidth": 1},
                           whiskerprops={"color": colour, "linewidth": 0.8})
        box["boxes"][0].set(facecolor=colour, edgecolor=colour, alpha=0.6)
        mean = float(geometric_mean(gain))
        axes.plot(place + 0.16, mean, MARKERS[meaning], color=colour, markeredgecolor="black",
                  markeredgewidth=0.6, markersize=4.5, zorder=4)
        axes.annotate(f"{mean:.2f}", (place, 0.02), xycoords=("data", "axes fraction"),
                      ha="center", fontsize=7, color=colour, fontweight="bold")
    axes.set_xticks(range(len(_LABELS)), [label for label, _ in _LABELS.values()])
    axes.set_ylabel("speed-up over sequential")
    axes.set_xlim(-0.5, len(_LABELS) - 0.5)
    axes.set_yscale("log", base=2)
    axes.set_ylim(bottom=0.7)
    log_axis(axes.yaxis, numbers=[0.5, 1, 2, 4, 8])
    axes.grid(axis="x", visible=False)


def _draw_predictions(axes, rows):
    measured = rows["measured_dynamic_us"].to_numpy()
    predicted = rows["modelled_dynamic_us"].to_numpy()
    ends = np.array([min(measured.min(), predicted.min()), max(measured.max(), predicted.max())])
    axes.plot(ends, ends, color="black", linewidth=0.8)
    for factor in (1.08, 1 / 1.08):
        axes.plot(ends, ends * factor, color=GREY, linewidth=0.8, linestyle=(0, (5, 2)))
    axes.plot(measured, predicted, MARKERS["modelled"], color=COLOURS["modelled"], markersize=3,
              alpha=0.7, markeredgewidth=0)
    error = 100 * np.mean(np.abs(predicted / measured - 1))
    axes.annotate(f"mean absolute error {error:.1f} %", (0.04, 0.93), xycoords="axes fraction",
                  fontsize=7.5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        log_axis(axis)
    axes.set_xlabel("measured time of all [µs]")
    axes.set_ylabel("predicted time [µs]")
