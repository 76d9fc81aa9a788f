"""Where running equal GEMMs at once, each with its own best kernel, helps and where it hurts."""

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from perfmodel.equations.metrics import geometric_mean
from perfmodel.figures.measured import SOURCES, grid, long_table
from perfmodel.plotting import PAGE_WIDTH, style
from perfmodel.units import US

TITLE = "Default concurrency against sequential execution"
CAPTION = (
    "Speed-up of running copies of a GEMM at once, each with the kernel that is fastest in "
    "isolation (default concurrency), over running them one after another with the same kernel. "
    "Colour and number: geometric mean over the GEMMs of that size. Hatched: some of the GEMMs "
    "are slower at once than in sequence; the lower number is their share. Measured: kernel by "
    "measured time, times measured. Modelled: kernel by modelled time, times modelled, with "
    "parameters fitted without that GEMM. A cell holds 4 to 47 GEMMs; a quarter of those slower "
    "at once are so by less than 2 %, within the repeat error of the measurement."
)

#: Edges of the classes of size [GFLOP].
_EDGES_GFLOP = np.array([0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100])

#: Diverges from 1, alike for a factor up and down.
_NORM = LogNorm(0.4, 2.5)

_HATCH = {"hatch": "////", "edgecolor": "#b35806", "alpha": 0.5, "linewidth": 0}


def compute():
    """Speed-up over sequential, DataFrame, one row a source, GEMM and degree."""
    data = grid()
    parts = []
    for source in SOURCES:
        seconds = data.seconds_of(source, data.default_kernel(source))
        parts.append(long_table(data.gemms, data.degrees, {
            "source": source,
            "size_gflop": data.gemms.flop[:, None] / 1e9,
            "sequential_time_us": data.degrees * seconds[:, :1] / US,
            "default_time_us": seconds / US,
            "default_over_sequential": data.degrees * seconds[:, :1] / seconds,
        }))
    table = pd.concat(parts, ignore_index=True)
    return table[table["concurrency_degree"] > 1].reset_index(drop=True)


@style()
def draw(table):
    """Two heat maps of size and degree, measured and modelled.

    Parameters
    ----------
    table : DataFrame
        From `compute`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = Figure(figsize=(PAGE_WIDTH, 2.9))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, source in zip(panels, SOURCES):
        colours = _draw_map(axes, table[table["source"] == source])
        axes.set_title(source)
        axes.set_xlabel("size of one GEMM [GFLOP]")
    panels[0].set_ylabel("concurrency degree")
    ticks = [0.4, 0.6, 1, 1.6, 2.5]
    bar = figure.colorbar(colours, ax=panels, pad=0.01, aspect=18, extend="max", ticks=ticks,
                          label="speed-up over sequential")
    bar.ax.set_yticklabels([f"{tick:g}" for tick in ticks])
    bar.ax.minorticks_off()
    hurts = Patch(facecolor="white", label="some GEMMs slower than in sequence, and their share",
                  **_HATCH)
    figure.legend(handles=[hurts], loc="outside upper center")
    return figure


def _draw_map(axes, rows):
    degrees = np.unique(rows["concurrency_degree"])
    bins = np.digitize(rows["size_gflop"], _EDGES_GFLOP) - 1
    shape = (len(degrees), len(_EDGES_GFLOP) - 1)
    means = np.full(shape, np.nan)
    for (degree, column), group in rows.groupby(["concurrency_degree", bins]):
        line = np.searchsorted(degrees, degree)
        ratio = group["default_over_sequential"].to_numpy()
        means[line, column] = geometric_mean(ratio)
        _write_cell(axes, line, column, means[line, column], np.mean(ratio < 1))
    colours = axes.imshow(means, cmap="PuOr", norm=_NORM, aspect="auto", origin="lower")
    axes.set_xticks(np.arange(len(_EDGES_GFLOP)) - 0.5, [f"{edge:g}" for edge in _EDGES_GFLOP])
    axes.set_yticks(np.arange(len(degrees)), [str(degree) for degree in degrees])
    axes.grid(visible=False)
    return colours


def _write_cell(axes, line, column, mean, slower_share):
    ink = "white" if mean > 1.8 else "black"
    hurts = slower_share > 0
    axes.text(column, line + 0.13 * hurts, f"{mean:.2f}", ha="center", va="center", fontsize=7,
              color=ink)
    if hurts:
        axes.text(column, line - 0.22, f"{100 * slower_share:.0f} %", ha="center", va="center",
                  fontsize=6, color=ink)
        axes.add_patch(Rectangle((column - 0.5, line - 0.5), 1, 1, fill=False, **_HATCH))
