"""One module a figure: its title, caption, `compute()` (a table) and `draw(table)` (a picture)."""

from importlib import import_module

from perfmodel.checks import one_of

#: In the order of a reader's questions: limits, trust, problem, remedy, why, where time goes,
#: and proof.
NAMES = (
    "roofline",
    "parity",
    "default_against_sequential",
    "go_gain",
    "kernel_features",
    "time_breakdown",
    "verification",
)


def load(name):
    """The module of a figure: ``TITLE``, ``CAPTION``, ``compute()`` and ``draw(table)``.

    Parameters
    ----------
    name : str
        One of `NAMES`.

    Raises
    ------
    ValueError
        If there is no such figure; lists the valid names.
    """
    return import_module(f"{__name__}.{one_of('figure', name, NAMES)}")
