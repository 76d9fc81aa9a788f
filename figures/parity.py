"""How far the model's times are from measured ones, on GEMMs that the fit has not seen."""

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from perfmodel.figures.measured import MEASURED, MODELLED, grid
from perfmodel.gpu.kernels import KERNEL
from perfmodel.measurements.validate import errors
from perfmodel.plotting import COLOURS, PAGE_WIDTH, log_axis, style
from perfmodel.units import US

TITLE = "Predicted against measured time, by concurrency degree"
CAPTION = (
    "Every measured time (195 GEMMs, 58 kernels, five degrees: 11,310 rows a panel) against the "
    "time modelled with parameters fitted without that GEMM (five folds by GEMM). Time of one "
    "launch on every branch. Dashed: 10 % above and below. MAPE: mean absolute error in % of the "
    "measured time. Last panel: the error, modelled over measured time less 1, a box a degree; it "
    "holds the middle half, whiskers the middle 90 %, the bar is the median. Measured again on "
    "another machine of the kind, times moved by 2.4 % in the mean."
)

_BAND_PCT = 10


def compute():
    """Measured and modelled time of each row, DataFrame, one row a GEMM, kernel and degree."""
    data = grid()
    shape = data.seconds[MEASURED].shape
    axes = {name: getattr(data.gemms, name)[:, None, None] for name in ("m", "n", "k")}
    axes |= {name: getattr(data.kernels, name)[:, None] for name in KERNEL}
    axes["concurrency_degree"] = data.degrees
    axes |= {f"{source}_time_us": data.seconds[source] / US for source in (MEASURED, MODELLED)}
    table = pd.DataFrame({name: np.broadcast_to(x, shape).ravel() for name, x in axes.items()})
    return table.assign(error_pct=100 * (table["modelled_time_us"] / table["measured_time_us"] - 1))


@style()
def draw(table):
    """A density a degree, and the distributions of the error.

    Parameters
    ----------
    table : DataFrame
        From `compute`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = Figure(figsize=(PAGE_WIDTH, 4.6))
    panels = figure.subplots(2, 3).ravel()
    times = table[["measured_time_us", "modelled_time_us"]]
    ends = np.array([times.min().min() / 1.2, times.max().max() * 1.2])
    groups = list(table.groupby("concurrency_degree"))
    for axes, (degree, rows) in zip(panels, groups):
        density = _draw_density(axes, rows, ends)
        axes.set_title("alone" if degree == 1 else f"{degree} at once")
        axes.set_xlabel("measured time [µs]")
    for axes in panels[::3]:
        axes.set_ylabel("modelled time [µs]")
    bar = figure.colorbar(density, ax=list(panels[:3]), label="rows a cell", aspect=15, pad=0.01)
    log_axis(bar.ax.yaxis)
    _draw_errors(panels[5], groups)
    return figure


def _draw_density(axes, rows, ends):
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    density = axes.hexbin(
        rows["measured_time_us"], rows["modelled_time_us"], gridsize=55, xscale="log",
        yscale="log", extent=(*np.log10(ends), *np.log10(ends)), mincnt=1, cmap="viridis_r",
        norm=LogNorm(1, 200), linewidths=0.1)
    for factor in (1 - _BAND_PCT / 100, 1 + _BAND_PCT / 100):
        axes.plot(ends, ends * factor, "--", color="black", linewidth=0.6)
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)
    names = {"predicted_us": rows["modelled_time_us"], "time_us": rows["measured_time_us"]}
    mape_pct = errors(pd.DataFrame(names))["mape_pct"]
    axes.text(0.05, 0.95, f"MAPE {mape_pct:.1f} %", transform=axes.transAxes, va="top")
    return density


def _draw_errors(axes, groups):
    boxes = axes.boxplot(
        [rows["error_pct"] for _, rows in groups], whis=(5, 95), showfliers=False, widths=0.55,
        tick_labels=[str(degree) for degree, _ in groups], patch_artist=True,
        medianprops={"color": "black"})
    for box in boxes["boxes"]:
        box.set(facecolor=COLOURS[MODELLED], alpha=0.55)
    for edge in (-_BAND_PCT, _BAND_PCT):
        axes.axhline(edge, linestyle="--", color="black", linewidth=0.6)
    axes.set_title("error by degree")
    axes.set_xlabel("concurrency degree")
    axes.set_ylabel("error [%]")
    axes.grid(axis="x", visible=False)
