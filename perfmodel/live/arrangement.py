"""What is run together: launches of GEMMs, on branches that run at the same time.

An arrangement is a tuple of branches; a branch is a tuple of launches, which follow each other.
Everything that is measured is one: a GEMM alone (one branch), equal GEMMs together, GEMMs waiting,
different GEMMs together.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """One launch of a GEMM.

    Attributes
    ----------
    gemm : tuple of int
        m, n, k, batch.
    kernel : tuple of int or None
        As `perfmodel.gpu.kernels.KERNEL`; None for the vendor's library.
    operands : int
        Number of the set of operands, from 0. Launches with the same number share them.
    """

    gemm: tuple[int, int, int, int]
    kernel: tuple[int, ...] | None
    operands: int = 0


@dataclass(frozen=True)
class Setting:
    """Under which conditions something is timed.

    Attributes
    ----------
    dtype : str
    transposed_b : bool
        Whether B is stored as [n, k].
    cold : bool
        Whether L2 holds none of the operands at the start.
    carveout_pct : int
        Shared-memory carve-out of all kernels, -1 for left to the driver.
    """

    dtype: str = "fp16"
    transposed_b: bool = False
    cold: bool = False
    carveout_pct: int = -1


@dataclass(frozen=True)
class Timing:
    """Time of one arrangement.

    Attributes
    ----------
    seconds : float
        Median [s].
    spread : float
        Largest minus smallest, over the median.
    """

    seconds: float
    spread: float


def equal(gemm, kernel, degree, rounds):
    """`degree` branches, each launching the GEMM `rounds` times on operands of its own.

    Examples
    --------
    >>> [[launch.operands for launch in branch] for branch in equal((64, 64, 64, 1), None, 2, 3)]
    [[0, 0, 0], [1, 1, 1]]
    """
    return tuple((Launch(gemm, kernel, branch),) * rounds for branch in range(degree))


def waiting(gemm, kernel, count, degree, rounds):
    """`count` GEMMs, each with its own operands, dealt to `degree` branches, `rounds` times over.

    Parameters
    ----------
    gemm, kernel
        As in `Launch`.
    count : int
        A multiple of `degree`.
    degree, rounds : int

    Examples
    --------
    >>> [[launch.operands for launch in b] for b in waiting((64, 64, 64, 1), None, 4, 2, 1)]
    [[0, 2], [1, 3]]
    """
    return tuple(
        tuple(Launch(gemm, kernel, i) for i in range(branch, count, degree)) * rounds
        for branch in range(degree))


def mixed(members):
    """One launch of each member on a branch of its own.

    Parameters
    ----------
    members : sequence of (gemm, kernel)
    """
    return tuple((Launch(gemm, kernel, i),) for i, (gemm, kernel) in enumerate(members))
