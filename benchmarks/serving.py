"""Measured GEMMs of serving, read where aiconfigurator-core (NVIDIA, Apache-2.0) is installed."""

import numpy as np
from tqdm import tqdm

from perfmodel.gpu.kernels import kernel_space
from perfmodel.gpu.space import evaluate
from perfmodel.problems import gemms
from perfmodel.units import US
from workers import ask

SYSTEM = {"h200": "h200_sxm"}
DTYPE = {"bf16": "bfloat16"}

#: PyTorch's linear layer without anything around it: its kernels are cuBLAS'.
FRAMEWORK = "vllm"

#: Problems evaluated between two steps of the progress bar.
CHUNK = 500


def serving_rows(environment, device, dtype="bf16"):
    """The table of `FRAMEWORK`, or None where the package is not installed.

    Parameters
    ----------
    environment : path
    device : Gpu
    dtype : str

    Returns
    -------
    DataFrame
        ``m``, ``n``, ``k``, ``batch``, ``concurrency_degree``, ``time_us``, ``version``.
    """
    answer = ask(environment, "serving_worker.py", [SYSTEM[device.name], DTYPE[dtype]])
    if answer is None:
        return None
    table = answer[answer["framework"] == FRAMEWORK].reset_index(drop=True)
    return table.assign(batch=1, concurrency_degree=1)


def best_of_space_us(table, device, dtype="bf16"):
    """perfmodel's time of its best kernel of the whole space, alone, L2 warm [us]."""
    problems = gemms(*(table[name].to_numpy() for name in "mnk"), dtype=dtype)
    kernels = kernel_space(device, dtype)
    found = np.empty(len(table))
    with tqdm(total=len(table), desc="perfmodel, serving", unit=" GEMMs", disable=None) as bar:
        for start in range(0, len(table), CHUNK):
            part = slice(start, start + CHUNK)
            space = evaluate(device, problems[part], kernels, [1])
            found[part] = np.nanmin(space.seconds[:, :, 0], axis=1) / US
            bar.update(len(found[part]))
    return found
