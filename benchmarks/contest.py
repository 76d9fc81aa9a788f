"""The data of the benchmark, what is left out of fits, and the scores."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfmodel.measurements.calibrate import FOLDS, fold_of
from perfmodel.measurements.rows import GEMM, selected, with_resources
from perfmodel.measurements.rows_waiting import waiting_selected
from perfmodel.measurements.table import (
    KERNEL, kernel_rows, library_rows, read_measurements, read_waiting)
from perfmodel.measurements.validate import CONTEST
from perfmodel.problems import gemms
from perfmodel.resources import data_path

#: Values closer than this share are one and the same to a peer.
TIE = 1e-9


@dataclass(frozen=True)
class Data:
    """Measured tables of one device, each a DataFrame with a fresh index.

    Attributes
    ----------
    known : DataFrame
        gemm_concurrent: kernels by degree; with ``gemm_fold``, ``kernel_fold``, ``isolated_us``.
    library : DataFrame
        Its cuBLAS rows.
    fresh : DataFrame
        verify: GEMMs that no fit has seen, all kernels and degrees; ``time_us`` is that of all
        that wait, ``isolated_us`` that of one by one.
    waiting : DataFrame
        waiting: the GEMMs of `known`, run as those of `fresh` are.
    """

    known: pd.DataFrame
    library: pd.DataFrame
    fresh: pd.DataFrame
    waiting: pd.DataFrame


def load(device):
    """`Data` of the shipped tables.

    Parameters
    ----------
    device : Gpu
    """
    folder = data_path("measurements", device.name)
    table = read_measurements(folder / "gemm_concurrent.csv.gz")
    known = selected(with_resources(kernel_rows(table), device), device)[0].reset_index(drop=True)
    fresh, waiting = (
        waiting_selected(read_waiting(folder / f"{name}.csv.gz"), device)[0]
        .assign(cache="warm").reset_index(drop=True)
        for name in ("verify", "waiting"))
    return Data(
        _with_isolated(known.assign(gemm_fold=gemm_folds(known), kernel_fold=kernel_folds(known))),
        library_rows(table).reset_index(drop=True),
        _with_isolated(fresh),
        waiting)


def gemm_folds(table):
    """Fold that leaves each row's GEMM out: that of `perfmodel calibrate`, ndarray of int."""
    sizes = table[GEMM].drop_duplicates()
    labels = gemms(*(sizes[name].to_numpy() for name in GEMM)).labels
    folds = pd.Series([fold_of(label) for label in labels], pd.MultiIndex.from_frame(sizes))
    return folds.reindex(pd.MultiIndex.from_frame(table[GEMM])).to_numpy()


def kernel_folds(table):
    """Fold that leaves out all kernels of each row's tile, ndarray of int.

    Tiles in order of their sides are dealt to the folds in turn, so that each has small and large.
    """
    _, shape = np.unique(table[["macro_tile_m", "macro_tile_n"]], axis=0, return_inverse=True)
    return shape.ravel() % FOLDS


def cells(table):
    """What is left out in turn when neither GEMM nor kernel may have been seen.

    Yields
    ------
    seen, unseen : ndarray of bool, shape (row,)
        Rows of other GEMMs and other tiles; rows of this GEMM fold and this kernel fold.
    """
    for gemm in range(FOLDS):
        for kernel in range(FOLDS):
            of_gemm, of_kernel = table["gemm_fold"] == gemm, table["kernel_fold"] == kernel
            yield (~of_gemm & ~of_kernel).to_numpy(), (of_gemm & of_kernel).to_numpy()


def folds(table):
    """As `cells`, but only the GEMM is left out."""
    for gemm in range(FOLDS):
        unseen = (table["gemm_fold"] == gemm).to_numpy()
        yield ~unseen, unseen


def scaled(predicted, measured, parts):
    """Times times one factor, which is fitted to other rows: the median of measured over predicted.

    Parameters
    ----------
    predicted, measured : ndarray, shape (row,)
    parts : iterable of seen, unseen
        From `folds` or `cells`.
    """
    found = np.full(len(predicted), np.nan)
    for seen, unseen in parts:
        found[unseen] = predicted[unseen] * np.nanmedian(measured[seen] / predicted[seen])
    return found


def launches(table):
    """Launches of the row's GEMM one after the other on each branch, for all that wait."""
    if "waiting" not in table:
        return np.ones(len(table))
    return (table["waiting"] / table["concurrency_degree"]).to_numpy()


def scaled_by_kernel(predicted, measured, kernel, parts):
    """As `scaled`, but with a factor for each kernel.

    Parameters
    ----------
    kernel : ndarray of int, shape (row,)
    """
    found = np.full(len(predicted), np.nan)
    ratio = pd.Series(measured / predicted)
    for seen, unseen in parts:
        factor = ratio[seen].groupby(kernel[seen]).median()
        found[unseen] = predicted[unseen] * factor.reindex(kernel[unseen]).to_numpy()
    return found


def kernel_numbers(*tables):
    """A number for each row's kernel, the same in all tables, list of ndarray of int."""
    kernels = pd.concat(tables)[list(KERNEL)]
    numbers = kernels.groupby(list(KERNEL)).ngroup().to_numpy()
    return np.split(numbers, np.cumsum([len(table) for table in tables])[:-1])


def mape(predicted, measured):
    """Mean absolute error of the times that there are [%], NaN if there are none."""
    error = np.abs(np.asarray(predicted) / np.asarray(measured) - 1)
    return float(np.nanmean(error) * 100) if np.isfinite(error).any() else np.nan


def regret(table, score, contest=(*CONTEST, "concurrency_degree")):
    """Time of the pick over the best measured, geometric mean over contests, by degree if that is
    a part of the contest.

    Rows that tie for the least score are as likely to be picked: the mean of their logs counts. A
    peer to which all rows of every contest are the same picks none: NaN.

    Parameters
    ----------
    table : DataFrame
        With ``time_us``.
    score : ndarray, shape (row,)
        The least is picked; NaN is never picked.
    contest : sequence of str
        Columns that make rows choices of the same question.

    Returns
    -------
    dict of int to float, or float
    """
    contest = list(contest)
    rated = table.assign(score=score, time=np.log(table["time_us"]))
    groups = rated.groupby(contest)
    least = groups["score"].transform("min")
    picked = rated[rated["score"] <= least + TIE * least.abs()]
    if len(picked) == len(rated):
        by_degree = "concurrency_degree" in contest
        return dict.fromkeys(rated["concurrency_degree"], np.nan) if by_degree else np.nan
    loss = (picked.groupby(contest)["time"].mean() - groups["time"].min()).rename("loss")
    if "concurrency_degree" not in contest:
        return float(np.exp(loss.mean()))
    return np.exp(loss.groupby("concurrency_degree").mean()).to_dict()


#: A question about the fresh GEMMs: which kernel, and how many at a time.
FRESH_CONTEST = (*GEMM, "rounds")


def _with_isolated(table):
    """The table with the time of the row's GEMM and kernel, and rounds, alone."""
    key = [*GEMM, "rounds", *KERNEL]
    alone = table[table["concurrency_degree"] == 1].set_index(key)["time_us"]
    return table.assign(isolated_us=alone.reindex(pd.MultiIndex.from_frame(table[key])).to_numpy())
