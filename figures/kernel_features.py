"""How the best kernel changes from isolation to each degree of concurrency."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from perfmodel.equations import tiles, waves
from perfmodel.equations.metrics import geometric_mean
from perfmodel.figures.measured import SOURCES, grid, long_table
from perfmodel.plotting import COLOURS, MARKERS, PAGE_WIDTH, log_axis, style

TITLE = "Features of the GO-Kernel against the best kernel in isolation"
CAPTION = (
    "For each of 195 GEMMs: a feature of the kernel that is fastest at a degree, over the same "
    "feature of the kernel that is fastest in isolation. Marker: geometric mean over GEMMs; thick "
    "bar: quartiles; tick: median. Tile area: elements of C a workgroup computes. Occupancy: "
    "workgroups that a compute unit can hold. Waves: workgroups of all branches over those the "
    "chip holds, both kernels at that degree. Operand traffic: bytes of A and B that all "
    "workgroups of a launch load. Last panel: share of GEMMs whose fastest kernel is still the "
    "one in isolation. Measured: fastest by measured time. Modelled: by modelled time, with "
    "parameters fitted without that GEMM. The features themselves are counted, not measured."
)

_FEATURES = {
    "tile_area": "tile area",
    "workgroups": "workgroups a launch",
    "occupancy": "occupancy",
    "waves": "waves of all branches",
    "loaded_bytes": "operand traffic",
}


def compute():
    """Features of fastest kernels and their ratios, DataFrame, one row a source, GEMM, degree."""
    data = grid()
    parts = []
    for source in SOURCES:
        go, default = data.go_kernel(source), data.default_kernel(source)
        chosen, isolated = _features(data, go), _features(data, default)
        columns = {"source": source}
        columns |= {f"go_{name}": value for name, value in chosen.items()}
        columns |= {f"{name}_ratio": chosen[name] / isolated[name] for name in _FEATURES}
        columns["still_isolated_best"] = go == default
        parts.append(long_table(data.gemms, data.degrees, columns))
    return pd.concat(parts, ignore_index=True)


def _features(data, kernel):
    """Each of `_FEATURES` of one kernel for each GEMM and degree, (problem, degree)."""
    chosen, sizes = data.kernels[kernel], data.gemms[:, None]
    tile = (chosen.macro_tile_m, chosen.macro_tile_n)
    workgroups = tiles.workgroups(sizes.m, sizes.n, sizes.batch, *tile, chosen.split_k)
    occupancy = data.occupancy[kernel]
    steps = tiles.depth_steps(sizes.k, chosen.depth_u, chosen.split_k)
    step = tiles.step_bytes(*tile, chosen.depth_u, sizes.bytes_per_element)
    return {
        "tile_area": tile[0] * tile[1],
        "workgroups": workgroups,
        "occupancy": occupancy,
        "waves": waves.waves(data.degrees * workgroups, data.device.compute_units, occupancy),
        "loaded_bytes": workgroups * steps * step,
    }


@style()
def draw(table):
    """A panel a feature, and one for the share of GEMMs that keep their kernel.

    Parameters
    ----------
    table : DataFrame
        From `compute`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = Figure(figsize=(PAGE_WIDTH, 4.0))
    panels = figure.subplots(2, 3, sharex=True).ravel()
    degrees = np.unique(table["concurrency_degree"])
    for axes, (name, label) in zip(panels, _FEATURES.items()):
        _draw_ratio(axes, table, f"{name}_ratio", degrees)
        axes.set_title(label)
    _draw_share(panels[5], table, degrees)
    for axes in panels[3:]:
        axes.set_xlabel("concurrency degree")
    for axes in panels[::3]:
        axes.set_ylabel("GO-Kernel / isolated best")
    figure.legend(*panels[5].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def _draw_ratio(axes, table, column, degrees):
    for source, shift in zip(SOURCES, (-0.1, 0.1)):
        rows = table[table["source"] == source]
        ratios = np.array([rows.loc[rows["concurrency_degree"] == d, column] for d in degrees])
        at = np.arange(len(degrees)) + shift
        low, median, high = np.quantile(ratios, (0.25, 0.5, 0.75), axis=1)
        axes.vlines(at, low, high, color=COLOURS[source], linewidth=3.5, alpha=0.35)
        axes.plot(at, median, "_", color=COLOURS[source], markersize=8)
        axes.plot(at, geometric_mean(ratios, axis=1), "-", marker=MARKERS[source],
                  color=COLOURS[source])
    axes.axhline(1, color="black", linewidth=0.6)
    axes.set_yscale("log")
    log_axis(axes.yaxis, numbers=(0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.5, 2, 3, 4))
    axes.grid(axis="x", visible=False)


def _draw_share(axes, table, degrees):
    for source in SOURCES:
        rows = table[table["source"] == source]
        share = rows.groupby("concurrency_degree")["still_isolated_best"].mean()
        axes.plot(range(len(degrees)), 100 * share, "-", marker=MARKERS[source],
                  color=COLOURS[source], label=source)
    axes.set_title("still the isolated best")
    axes.set_ylabel("share of GEMMs [%]")
    axes.set_ylim(0, 105)
    axes.set_xticks(range(len(degrees)), [str(degree) for degree in degrees])
    axes.grid(axis="x", visible=False)
