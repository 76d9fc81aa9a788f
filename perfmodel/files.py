"""Writing files whole or not at all."""

import gzip
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path):
    """Context manager: a temporary path that becomes `path` when the block ends well.

    The temporary file lies in the same folder and has the same suffix (so that a plotting library
    can tell the format by it). If the block raises, it is removed and `path` is left as it was.

    Parameters
    ----------
    path : str or Path
        File to write. Its folder must exist.

    Raises
    ------
    OSError
        With one line naming `path`, if it cannot be written.
    """
    refuse_unwritable(path)
    # A symbolic link stays; what it points to is replaced.
    path, given = Path(os.path.realpath(path)), path
    temporary = None
    try:
        handle, name = tempfile.mkstemp(prefix=".", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        temporary.chmod(_mode(path))
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(f"cannot write {given}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def refuse_unwritable(path):
    """Raise `OSError`, one line naming `path`, if no file can come to lie there.

    Parameters
    ----------
    path : str or Path
        May exist as a regular file; a device, a pipe or a folder is never replaced.
    """
    path = Path(path)
    if path.is_dir():
        raise OSError(f"cannot write {path}: it is a folder")
    if path.exists() and not path.is_file():
        raise OSError(f"cannot write {path}: it is not a regular file")
    if not path.parent.is_dir():
        raise OSError(f"cannot write {path}: No such file or directory")


def write_text_atomic(path, text):
    """Write a text file in UTF-8, whole or not at all.

    Parameters
    ----------
    path : str or Path
    text : str

    Raises
    ------
    OSError
        With one line naming `path`, if it cannot be written.
    """
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_table_atomic(path, table):
    """Write a table as CSV without its index, gzipped if `path` ends in .gz, whole or not at all.

    The same table gives the same bytes: the gzip header carries no time and no name.

    Parameters
    ----------
    path : str or Path
    table : pandas.DataFrame

    Raises
    ------
    OSError
        With one line naming `path`, if it cannot be written.
    """
    content = table.to_csv(index=False, lineterminator="\n").encode()
    if Path(path).suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _mode(path):
    # mkstemp makes files only their owner can read: use what a plain open() would.
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
