"""An error of torch, Triton or a driver as one line."""

from contextlib import contextmanager


def one_line(error):
    """Kind and first line of an error, str.

    Examples
    --------
    >>> one_line(RuntimeError("out of memory\\nat 0x0")), one_line(AssertionError())
    ('RuntimeError: out of memory', 'AssertionError')
    """
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0][:200]}" if said else type(error).__name__


@contextmanager
def failing_in_one_line(what):
    """Context manager: what torch, Triton or a driver raise in it becomes an `OSError` of one line.

    Parameters
    ----------
    what : str
        What failed then.
    """
    try:
        yield
    except Exception as error:  # each library has errors of its own
        if isinstance(error, OSError) and error.strerror is None:
            raise  # one of ours
        raise OSError(f"{what}: {one_line(error)}") from error
