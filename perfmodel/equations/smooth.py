"""The smooth maximum: how costs that overlap in time add up."""

import numpy as np


def smooth_max(exponent, *costs):
    r"""Time of several activities that overlap, but not perfectly.

    .. math:: V_a(x, y, \ldots) = (x^a + y^a + \cdots)^{1/a}

    Between the largest cost (perfect overlap, :math:`a \to \infty`) and the sum (none,
    :math:`a = 1`). Homogeneous of degree one, so it has no preferred unit.

    Parameters
    ----------
    exponent : float
        At least 1.
    *costs : array_like
        Not negative, all of one unit; they broadcast.

    Returns
    -------
    ndarray

    References
    ----------
    .. [1] The p-norm. As a model of imperfect overlap of pipeline stages, fitted to
       data/measurements/h200/gemm_concurrent.csv.gz.

    Examples
    --------
    >>> float(smooth_max(2, 3.0, 4.0))
    5.0
    """
    # Scaled by the largest, so that powers of cycles cannot overflow.
    largest = costs[0]
    for cost in costs[1:]:
        largest = np.maximum(largest, cost)
    scale = np.where(largest > 0, largest, 1.0)
    total = sum((cost / scale) ** exponent for cost in costs)
    return scale * total ** (1 / exponent)
