"""nvMatmulHeuristics: its estimate of each measured kernel, its own picks, its best time."""

import numpy as np
import pandas as pd

from perfmodel.gpu.kernels import KERNEL
from perfmodel.measurements.rows import GEMM
from perfmodel.units import US
from workers import ask

GPU = {"h200": "H200_SXM"}
PRECISION = {"fp16": "HSH", "bf16": "TST"}

#: It is told of equal GEMMs together as a batch of that many.
QUESTION = ["m", "n", "k", "batch"]
TOGETHER = [*GEMM, "concurrency_degree"]

#: What distinguishes kernels of one tile, the weightiest first.
AFTER_THE_TILE = ("split_k", "depth_u", "warps", "stages")


class NvMatmul:
    """The peer in its virtual environment.

    Parameters
    ----------
    environment : path
    device : Gpu
    target : str
        Family of kernels that it is asked about: TRITON, CUTLASS3, GENERIC.
    flags : str
    """

    def __init__(self, environment, device, target, flags="NONE"):
        self.environment, self.target, self.flags = environment, target, flags
        self.gpu = GPU[device.name]

    def _ask(self, task, question, dtype, trans_b, count=1):
        layout = "NT_ROW_MAJOR" if trans_b else "NN_ROW_MAJOR"
        arguments = [
            task, self.target, PRECISION[dtype], layout, self.gpu, self.flags, str(count)]
        return ask(self.environment, "nvmatmul_worker.py", arguments, question)

    def estimate_us(self, table, dtype="fp16"):
        """Its time for the kernel of each row [us]; None if it is not installed."""
        batch = table["batch"] * table["concurrency_degree"]
        question = table.assign(batch=batch)[[*QUESTION, *KERNEL]]
        distinct = question.drop_duplicates()
        answer = self._ask("estimate", distinct, dtype, trans_b=False)
        if answer is None:
            return None
        seconds = pd.Series(
            answer["seconds"].to_numpy(), pd.MultiIndex.from_frame(distinct))
        found = seconds.reindex(pd.MultiIndex.from_frame(question)).to_numpy()
        return np.where(found > 0, found, np.nan) / US

    def best_us(self, table, dtype, trans_b=False):
        """Its time for the kernel that it would pick for each row's GEMMs [us]."""
        question = table.assign(batch=table["batch"] * table["concurrency_degree"])[QUESTION]
        answer = self._ask("pick", question, dtype, trans_b)
        if answer is None:
            return None
        seconds = answer.drop_duplicates("row").set_index("row")["seconds"]
        return seconds.reindex(range(len(table))).to_numpy() / US

    def picks(self, table, count=8):
        """Its picks as measured kernels: the nearest to its first pick of a measured tile.

        Parameters
        ----------
        table : DataFrame
            Rows of kernels measured.
        count : int
            Picks to look at.

        Returns
        -------
        score : ndarray, shape (row,)
            0 for the kernel picked, 1 for others, NaN where no pick has a measured tile.
        shares : dict
            Of GEMMs and degrees: ``tile``, whose first pick has a measured tile; ``kernel``, whose
            first pick was itself measured; ``any``, with a measured tile among the picks.
        """
        asked = table[TOGETHER].drop_duplicates().reset_index(drop=True)
        question = asked.assign(batch=asked["batch"] * asked["concurrency_degree"])[QUESTION]
        answer = self._ask("pick", question, "fp16", trans_b=False, count=count)
        if answer is None:
            return None, None
        kernels = table[list(KERNEL)].drop_duplicates().reset_index(drop=True)
        tiles = set(zip(kernels["macro_tile_m"], kernels["macro_tile_n"]))
        answer["tile"] = [t in tiles for t in zip(answer["macro_tile_m"], answer["macro_tile_n"])]
        first = answer[answer["rank"] == 0]
        shares = {
            "tile": float(first["tile"].sum() / len(asked)),
            "kernel": len(first.merge(kernels, on=list(KERNEL))) / len(asked),
            "any": answer.loc[answer["tile"], "row"].nunique() / len(asked)}
        usable = answer[answer["tile"]].drop_duplicates("row")
        nearest = [kernels.loc[_nearest(kernels, pick)] for _, pick in usable.iterrows()]
        chosen = pd.concat([
            asked.loc[usable["row"]].reset_index(drop=True),
            pd.DataFrame(nearest).reset_index(drop=True)], axis=1)
        key = [*TOGETHER, *KERNEL]
        hit = pd.MultiIndex.from_frame(table[key]).isin(pd.MultiIndex.from_frame(chosen[key]))
        known = pd.MultiIndex.from_frame(table[TOGETHER]).isin(
            pd.MultiIndex.from_frame(chosen[TOGETHER]))
        return np.where(known, np.where(hit, 0.0, 1.0), np.nan), shares


def _nearest(kernels, pick):
    """Label of the kernel of the pick's tile that differs least from it, in factors of two."""
    same = kernels[(kernels["macro_tile_m"] == pick["macro_tile_m"])
                   & (kernels["macro_tile_n"] == pick["macro_tile_n"])]
    apart = [np.abs(np.log2(same[name] / pick[name])) for name in AFTER_THE_TILE]
    return same.index[np.lexsort(apart[::-1])[0]]
