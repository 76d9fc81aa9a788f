"""An error of torch, Triton or a driver as one line."""


def one_line(error):
    """Kind and first line of an error, str.

    Examples
    --------
    >>> one_line(RuntimeError("out of memory\\nat 0x0")), one_line(AssertionError())
    ('RuntimeError: out of memory', 'AssertionError')
    """
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0][:200]}" if said else type(error).__name__
