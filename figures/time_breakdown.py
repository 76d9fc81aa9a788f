"""What the time of the default and of the GO-Kernel is made of, for five typical GEMMs."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from perfmodel.figures.measured import DTYPE, MEASURED, grid
from perfmodel.gpu.breakdown import TERMS, breakdown
from perfmodel.gpu.machine import machine_of
from perfmodel.measurements.validate import unseen_values
from perfmodel.plotting import COLOURS, MARKERS, PAGE_WIDTH, style
from perfmodel.units import US

TITLE = "Time breakdown of the default and the GO-Kernel"
CAPTION = (
    "Time of one GEMM (time of all over concurrency degree) with the kernel that is fastest in "
    "isolation (D, left bar) and with the one that is fastest at the degree (G, right bar), both "
    "by measured time. Bars: the model's time by term, with parameters fitted without that GEMM; "
    "a term is what its cost adds to the total, so a cost hidden behind others shows as next to "
    "nothing. Points: measured time of the same kernels; the distance "
    "to the bar is the model's error. GEMMs as m x n x k."
)

#: GEMMs of the measured table, m x n x k, and what is typical of each.
TYPICAL = {
    "64x4096x1024": "LSTM gates",
    "512x3072x768": "BERT feed-forward",
    "64x1024x1024": "small-batch inference",
    "2080x2080x3808": "large square",
    "4192x64x3328": "skinny",
}

_LETTERS = {"default": "D", "go": "G"}

#: Name and colour of each term, from the bottom of a bar: Paul Tol's light scheme, colour-blind
#: safe, and none of the colours that mean a kernel or a source.
TERM_STYLES = {
    "matrix_pipe": ("matrix pipe", "#77AADD"),
    "operand_feed": ("operand feed", "#EE8866"),
    "latency": ("latency", "#EEDD88"),
    "hbm": ("HBM", "#AAAA00"),
    "split_k": ("split-K", "#FFAABB"),
    "store": ("store", "#99DDFF"),
    "launch": ("launch", "#BBBBBB"),
    "tail": ("tail of the last wave", "#44BB99"),
}


def compute():
    """Terms of the modelled time, DataFrame, one row a GEMM, degree and kernel.

    ``modelled_*_us`` sum to ``modelled_time_us``; ``measured_time_us`` is of the same kernel. All
    are of `concurrency_degree` GEMMs.
    """
    data = grid()
    labels = np.array(data.gemms.labels)
    at = np.array([np.flatnonzero(labels == label)[0] for label in TYPICAL])
    kernels = {
        "default": data.default_kernel(MEASURED)[at], "go": data.go_kernel(MEASURED)[at]}
    parts = []
    for name, kernel in kernels.items():
        terms = _terms(data, at, kernel)
        measured = data.seconds[MEASURED][at[:, None], kernel, np.arange(len(data.degrees))]
        table = pd.DataFrame({
            "gemm": np.repeat([*TYPICAL], len(data.degrees)),
            "concurrency_degree": np.tile(data.degrees, len(at)),
            "kernel": name,
            "kernel_label": data.kernels[kernel.ravel()].labels,
            "measured_time_us": measured.ravel() / US,
            "modelled_time_us": sum(terms.values()).ravel() / US,
        })
        columns = {f"modelled_{term}_us": value.ravel() / US for term, value in terms.items()}
        parts.append(table.assign(**columns))
    return pd.concat(parts, ignore_index=True)


def _terms(data, at, kernel):
    """Breakdown of one kernel for each GEMM `at` and degree, dict of (problem, degree) [s]."""
    gemms = data.gemms[at]
    terms = {term: np.empty(kernel.shape) for term in TERMS}
    for rows, values, _ in unseen_values(data.device, np.array(gemms.labels)):
        parts = breakdown(
            machine_of(data.device, DTYPE, values), gemms[rows][:, None],
            data.kernels[kernel[rows]], data.occupancy[kernel[rows]], data.degrees, data.rounds)
        for term, value in parts.items():
            terms[term][rows] = value
    return terms


@style()
def draw(table):
    """A panel a GEMM: bars of terms, and measured times.

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
    for axes, (gemm, what) in zip(panels, TYPICAL.items()):
        _draw_bars(axes, table[table["gemm"] == gemm])
        axes.set_title(f"{what}\n{gemm}")
    for axes in panels[::3]:
        axes.set_ylabel("time per GEMM [µs]")
    for axes in panels[2:5]:
        axes.set_xlabel("concurrency degree")
    handles, names = panels[0].get_legend_handles_labels()
    # The last term is on top of the bar: the legend reads from the top, too.
    panels[5].legend(handles[::-1], names[::-1], loc="center left", labelspacing=0.6,
                     title="D default, G GO-Kernel", alignment="left")
    panels[5].axis("off")
    return figure


def _draw_bars(axes, rows):
    degrees = np.unique(rows["concurrency_degree"])
    for (kernel, letter), shift in zip(_LETTERS.items(), (-0.2, 0.2)):
        bars = rows[rows["kernel"] == kernel].set_index("concurrency_degree").loc[degrees]
        at, bottom = np.arange(len(degrees)) + shift, np.zeros(len(degrees))
        for term, (name, colour) in TERM_STYLES.items():
            height = (bars[f"modelled_{term}_us"] / degrees).to_numpy()
            axes.bar(at, height, 0.36, bottom, color=colour, edgecolor="white", linewidth=0.2,
                     label=name if kernel == "go" else None)
            bottom += height
        axes.plot(at, bars["measured_time_us"] / degrees, MARKERS[MEASURED], markersize=3.5,
                  color=COLOURS[MEASURED], markeredgecolor="white", markeredgewidth=0.5,
                  label="measured" if kernel == "go" else None)
        for place in at:
            axes.annotate(letter, (place, 0), (0, -2), textcoords="offset points",
                          ha="center", va="top", fontsize=6)
    # Else the tops of the bars stick to the frame.
    axes.use_sticky_edges = False
    axes.set_ylim(bottom=0)
    axes.set_xticks(range(len(degrees)), [str(degree) for degree in degrees])
    axes.tick_params(axis="x", length=0, pad=9)
    axes.grid(axis="x", visible=False)
