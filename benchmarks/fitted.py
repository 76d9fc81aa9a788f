"""Peers that are fitted: perfmodel itself, and gradient-boosted trees on the same rows."""

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from tqdm import tqdm

from contest import cells, folds, launches
from perfmodel.equations.tiles import depth_steps, workgroups
from perfmodel.equations.waves import waves
from perfmodel.gpu.kernels import occupancy_of
from perfmodel.gpu.parameters import start_values
from perfmodel.measurements.calibrate import OF_EQUALS, FOLDS, fit
from perfmodel.measurements.rows import rows_of
from perfmodel.units import US

TREES = dict(
    max_iter=1500, learning_rate=0.05, max_leaf_nodes=31, min_samples_leaf=10, random_state=0)


def unseen_kernels_us(table, device):
    """perfmodel refitted without GEMM and tile of each row, on this table alone [us].

    Parameters
    ----------
    table : DataFrame
        `contest.Data.known`.
    device : Gpu
    """
    rows = rows_of(table, device, "fp16")
    found = np.empty(len(table))
    parts = tqdm(
        cells(table), "perfmodel, unseen kernels", FOLDS**2, unit=" fits", disable=None)
    for seen, unseen in parts:
        values, _, _ = fit([rows[seen]], device, start_values(), OF_EQUALS)
        found[unseen] = rows[unseen].predicted(device, values) / US
    return found


def features(table, device):
    """What the trees see of a row, ndarray of shape (row, feature): logs of sizes, tile, degree,
    and what follows from them and the compiler's resources."""
    rows = rows_of(table, device, "fp16")
    gemm, kernel = rows.gemms, rows.kernels
    launch = workgroups(
        gemm.m, gemm.n, gemm.batch, kernel.macro_tile_m, kernel.macro_tile_n, kernel.split_k)
    steps = depth_steps(gemm.k, kernel.depth_u, kernel.split_k)
    together = launch * rows.degree
    rounds = waves(together, device.compute_units, rows.occupancy)
    columns = (
        gemm.m, gemm.n, gemm.k, rows.degree, rows.rounds, launches(table),
        kernel.macro_tile_m, kernel.macro_tile_n, kernel.depth_u, kernel.stages, kernel.warps,
        kernel.split_k, kernel.registers_per_thread, kernel.lds_bytes, rows.occupancy,
        launch, together, steps, rounds, np.ceil(rounds), steps * np.ceil(rounds),
        together * steps / device.compute_units,
        gemm.flop, gemm.flop * rows.degree, kernel.macro_tile_m * kernel.macro_tile_n)
    return np.log(np.stack([np.asarray(column, float) for column in columns], axis=1))


def trees(table, device):
    """Times by trees on log time: with the GEMM left out, and with GEMM and tile left out [us].

    Parameters
    ----------
    table : DataFrame
        `contest.Data.known`.
    device : Gpu

    Returns
    -------
    tuple of two ndarrays, shape (row,)
    """
    seen_as, target = features(table, device), np.log(table["time_us"].to_numpy())
    found = []
    for name, parts, count in (
            ("unseen GEMMs", folds, FOLDS), ("unseen kernels", cells, FOLDS**2)):
        times = np.empty(len(table))
        for seen, unseen in tqdm(parts(table), f"trees, {name}", count, unit=" fits", disable=None):
            model = HistGradientBoostingRegressor(**TREES).fit(seen_as[seen], target[seen])
            times[unseen] = np.exp(model.predict(seen_as[unseen]))
        found.append(times)
    return tuple(found)


def trees_fresh(data, device):
    """Time of all that wait of the fresh GEMMs, by trees on both tables of the others [us].

    What is fitted is the time of all over the launches on each branch.

    Parameters
    ----------
    data : contest.Data
    device : Gpu
    """
    seen = pd.concat([data.known, data.waiting], ignore_index=True)
    seen["waiting"] = seen["waiting"].fillna(seen["concurrency_degree"])
    model = HistGradientBoostingRegressor(**TREES)
    model.fit(features(seen, device), np.log(seen["time_us"].to_numpy() / launches(seen)))
    return np.exp(model.predict(features(data.fresh, device))) * launches(data.fresh)
