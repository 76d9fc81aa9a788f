"""Where the shipped data files are."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_path(*parts):
    """Path of a shipped file or folder below data/.

    Installed, data/ lies inside the package; in a checkout, beside it.

    Parameters
    ----------
    *parts : str
        Names below data/, joined.

    Raises
    ------
    ValueError
        If there is no such file or folder.

    Examples
    --------
    >>> data_path("devices", "h200.toml").name
    'h200.toml'
    """
    inside = _PACKAGE / "data"
    root = inside if inside.is_dir() else _PACKAGE.parent / "data"
    path = root.joinpath(*parts)
    if not path.exists():
        raise ValueError(f"{'/'.join(parts)} is not among the shipped data (looked in {root})")
    return path
