"""What the GO-Kernel gains over the default one, and how much of it the model's pick keeps."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from perfmodel.equations.metrics import geometric_mean
from perfmodel.figures.measured import MEASURED, MODELLED, grid, long_table
from perfmodel.plotting import COLOURS, GREY, MARKERS, PAGE_WIDTH, style
from perfmodel.units import US

TITLE = "Gain of the GO-Kernel over default concurrency"
CAPTION = (
    "Time of copies of a GEMM run at once with its best kernel in isolation (default) over their "
    "time with the kernel chosen for that degree; 195 GEMMs, each a point. Measured: default and "
    "chosen kernel by measured time, times measured. Kernel picked by the model: the pick of a "
    "model that has not seen the GEMM, in place of the measured best, and still times measured, so "
    "that a bad pick shows as a loss. Modelled: default and chosen kernel by modelled time, times "
    "modelled. The measured best of 58 kernels is a minimum over times that repeat to 2.4 %, so "
    "its gain is a little too large. Box: middle half; bar: median; number and marker: geometric "
    "mean. Reference lines: "
    "GOLDYLOC (ACM TACO 22(2), 2025), published geometric mean per workload and maximum, measured "
    "on another GPU, an AMD one, with its own kernels: a scale, not a target."
)

#: Published gain over default concurrency: geometric mean per workload, and maximum.
PUBLISHED = {"geometric mean": 1.18, "maximum": 2.0}

#: What each series is: who picked the kernel, and which times are compared.
_SERIES = {
    (MEASURED, MEASURED): ("measured", "measured"),
    (MODELLED, MEASURED): ("modelled pick", "kernel picked by the model, times measured"),
    (MODELLED, MODELLED): ("modelled", "modelled"),
}


def compute():
    """Gain of each GEMM, DataFrame, one row a GEMM, degree, picker of the kernel and time source.

    The default kernel is always the best in isolation by the times that are compared.
    """
    data = grid()
    parts = []
    for picked_by, source in _SERIES:
        default = data.seconds_of(source, data.default_kernel(source))
        chosen = data.seconds_of(source, data.go_kernel(picked_by))
        parts.append(long_table(data.gemms, data.degrees, {
            "picked_by": picked_by,
            "source": source,
            "default_time_us": default / US,
            "go_time_us": chosen / US,
            "go_over_default": default / chosen,
        }))
    table = pd.concat(parts, ignore_index=True)
    return table[table["concurrency_degree"] > 1].reset_index(drop=True)


@style()
def draw(table):
    """Boxes and points by degree, a colour a series.

    Parameters
    ----------
    table : DataFrame
        From `compute`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = Figure(figsize=(PAGE_WIDTH, 3.5))
    axes = figure.subplots()
    degrees = np.unique(table["concurrency_degree"])
    for number, (key, (meaning, label)) in enumerate(_SERIES.items()):
        rows = table[(table["picked_by"] == key[0]) & (table["source"] == key[1])]
        for place, degree in enumerate(degrees):
            gain = rows.loc[rows["concurrency_degree"] == degree, "go_over_default"].to_numpy()
            _draw_series(axes, gain, place + 0.29 * (number - 1), meaning)
        axes.plot([], [], MARKERS[meaning], color=COLOURS[meaning], label=label)
    _draw_published(axes)
    axes.set_xticks(range(len(degrees)), [str(degree) for degree in degrees])
    axes.set_xlabel("concurrency degree")
    axes.set_ylabel("speed-up over default concurrency")
    axes.set_xlim(-0.55, len(degrees) - 0.45)
    axes.set_ylim(0.65, 2.1)
    axes.grid(axis="x", visible=False)
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def _draw_series(axes, gain, place, meaning):
    colour = COLOURS[meaning]
    # Spread by rank in a fixed order: no random jitter, so the same picture each time.
    spread = (np.arange(len(gain)) * 0.618034 % 1 - 0.5) * 0.15
    axes.plot(place - 0.055 + spread, gain, ".", color=colour, markersize=2.6, alpha=0.5,
              markeredgewidth=0)
    box = axes.boxplot([gain], positions=[place + 0.06], widths=0.06, whis=(5, 95),
                       showfliers=False, showcaps=False, patch_artist=True, manage_ticks=False,
                       medianprops={"color": "black", "linewidth": 1},
                       whiskerprops={"color": colour, "linewidth": 0.8})
    box["boxes"][0].set(facecolor=colour, edgecolor=colour, alpha=0.6)
    mean = geometric_mean(gain)
    axes.plot(place + 0.06, mean, MARKERS[meaning], color=colour, markeredgecolor="black",
              markeredgewidth=0.6, markersize=4.5, zorder=4)
    axes.annotate(f"{mean:.2f}", (place, 0.68), ha="center", fontsize=7, color=colour,
                  fontweight="bold")


def _draw_published(axes):
    axes.axhline(1, color="black", linewidth=0.8)
    for name, value in PUBLISHED.items():
        axes.axhline(value, color=GREY, linewidth=0.9, linestyle=(0, (5, 2)), zorder=1)
        axes.annotate(f"{value:g}x: {name},\nGOLDYLOC\n(TACO 2025),\nanother GPU", (1, value),
                      (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                      va="center", fontsize=7, color=GREY)
