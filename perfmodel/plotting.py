"""One style for every figure: fonts, palette, and saving that gives the same bytes again.

Figures are `matplotlib.figure.Figure` objects, never pyplot's: no window, no global state.
"""

from contextlib import contextmanager
from pathlib import Path

import matplotlib
from matplotlib import ticker

from perfmodel.files import replacing

#: Width of a page [inch].
PAGE_WIDTH = 7.2

#: Pixels per inch of the PNG.
DPI = 200

#: Colour of each thing that is shown, the same in all figures: Okabe and Ito, "Color universal
#: design", 2008.
COLOURS = {
    "measured": "#0072B2",
    "modelled": "#D55E00",
    "modelled pick": "#CC79A7",
    "default": "#E69F00",
    "go": "#009E73",
    "sequential": "#000000",
}

#: Marker of each, so that the figures can be read in grey.
MARKERS = {
    "measured": "o",
    "modelled": "D",
    "modelled pick": "v",
    "default": "s",
    "go": "^",
    "sequential": "_",
}

GREY = "#666666"

_RC = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handletextpad": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#333333",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "hatch.linewidth": 0.5,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": DPI,
    "pdf.fonttype": 42,
}


@contextmanager
def style():
    """Context manager, and decorator of a function that draws: the style of all figures."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield


@style()
def save(figure, stem):
    """Write a figure as PDF and PNG, each whole or not at all; the same figure, the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    stem : str or Path
        Path without suffix.

    Returns
    -------
    pdf, png : Path

    Raises
    ------
    OSError
        If one cannot be written.
    """
    stem = Path(stem)
    metadata = {"pdf": {"CreationDate": None}, "png": {}}
    paths = tuple(stem.with_name(f"{stem.name}.{suffix}") for suffix in metadata)
    for path, data in zip(paths, metadata.values()):
        with replacing(path) as temporary:
            figure.savefig(temporary, metadata=data)
    return paths


def log_axis(axis, base=10, numbers=None):
    """Plain numbers instead of powers at the ticks of a logarithmic axis.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        ``axes.xaxis`` or ``axes.yaxis``, of logarithmic scale.
    base : int, optional
        Ticks are at its powers.
    numbers : sequence of float, optional
        Ticks, in place of these.
    """
    locator = ticker.LogLocator(base) if numbers is None else ticker.FixedLocator(numbers)
    axis.set_major_locator(locator)
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())
    if numbers is not None:
        axis.set_minor_locator(ticker.NullLocator())
