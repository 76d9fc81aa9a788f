"""perfmodel beside its peers on the shipped H200 measurements: one table, and peers.csv.

Run by `make peers`; README.md of this folder says what is compared and how. A peer whose virtual
environment is not there is left out, with a message.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import contest
import fitted
import rules
from nvmatmul import NvMatmul
from perfmodel import load_device
from perfmodel.cli.text import say, table
from perfmodel.gpu.parameters import PARAMETERS
from perfmodel.measurements.validate import library_errors, predictions
from perfmodel.measurements.validate_waiting import waiting_predictions
from serving import best_of_space_us, serving_rows

HERE = Path(__file__).parent

#: Of its families of kernels the one that the measured kernels are of, and the one whose best
#: times are nearest to cuBLAS' (CUTLASS3's and TRITON's are further off).
NVMATMUL_KERNELS = "TRITON"
NVMATMUL_LIBRARY = "GENERIC"

#: Lets its timing model choose among all that it can generate; its picks are worse without.
NVMATMUL_FLAGS = "PERF_MODEL_BASED_AUTO_TUNING"

PRINTED = {
    "peer": "peer", "mape_pct": "MAPE %", "mape_pct_1": "1", "mape_pct_2": "2", "mape_pct_4": "4",
    "mape_pct_8": "8", "mape_pct_16": "16", "median_ape_pct": "median", "scaled_mape_pct": "scaled",
    "unseen_kernel_mape_pct": "kernels", "regret_1": "regret 1", "regret_2": "2", "regret_4": "4",
    "regret_8": "8", "regret_16": "16", "fresh_mape_pct": "fresh %", "fresh_regret": "regret",
    "library_mape_pct": "cuBLAS %", "serving_mape_pct": "serving %",
}

LEGEND = """\
1 to 16: GEMMs together. scaled: MAPE after one factor (or one a kernel), fitted to other GEMMs.
kernels: MAPE where neither the GEMM nor any kernel of the tile was seen. fresh: verify.csv.gz.
cuBLAS, serving: best time that a peer sees, against the library's. -: not asked, or it cannot say.
* chooses by the measured times alone of all kernels of that GEMM: no prediction."""


def main():
    """Run the command."""
    given = _arguments()
    device = load_device(given.device)
    data = contest.load(device)
    serving = serving_rows(given.aiconfigurator, device)
    if serving is None:
        _skipped("GEMMs of serving", given.aiconfigurator)
    rows = [_perfmodel(data, serving, device), _trees(data, device)]
    if Path(given.nvmatmul, "bin", "python").exists():
        rows += _nvmatmul(data, serving, device, given.nvmatmul)
    else:
        _skipped("nvMatmulHeuristics", given.nvmatmul)
    rows += [_roofline(data, serving, device)]
    rows += _granularity(data, device) + _rocblas(data, device)
    found = pd.DataFrame(rows)
    found.to_csv(given.output, index=False, float_format="%.4g")
    say(_printed(found))
    say("\n" + LEGEND)
    for row in rows:
        if "pick_tile_share" in row:
            say(_shares(row))


def _shares(row):
    tile, kernel, some = (row[f"pick_{name}_share"] for name in ("tile", "kernel", "any"))
    return (f"{row['peer']}: the tile of the first is measured in {tile:.0%} of cases, its very"
            f" kernel in {kernel:.0%}; some tile of the first eight in {some:.0%}")


def _arguments():
    parser = argparse.ArgumentParser(description="perfmodel beside its peers")
    parser.add_argument("--device", default="h200", help="a name, or a TOML file's path (h200)")
    parser.add_argument("--nvmatmul", default=".venv-nvmatmul", metavar="VENV",
                        help="has nvidia-matmul-heuristics (.venv-nvmatmul)")
    parser.add_argument("--aiconfigurator", default=".venv-aiconfigurator", metavar="VENV",
                        help="has aiconfigurator-core (.venv-aiconfigurator)")
    parser.add_argument("-o", "--output", default=HERE / "peers.csv", metavar="FILE")
    return parser.parse_args()


def _skipped(what, environment):
    sys.stderr.write(f"left out: {what}; there is no virtual environment {environment}\n")


def _one_line(error, status):
    sys.stderr.write(f"peers: {error}\n")
    return status


def _perfmodel(data, serving, device):
    known = predictions(data.known, device)["predicted_us"].to_numpy()
    fresh = waiting_predictions(data.fresh, device)["predicted_us"].to_numpy()
    library = library_errors(data.library, device)
    fit = f"{len(PARAMETERS)} parameters to {device.fit['rows']} rows, {device.fit['date']}"
    row = {"peer": "perfmodel", "fitted": fit}
    row |= _errors(data.known, known) | _regrets(data.known, known) | _fresh(data.fresh, fresh)
    row["unseen_kernel_mape_pct"] = contest.mape(
        fitted.unseen_kernels_us(data.known, device), data.known["time_us"])
    row["library_mape_pct"] = contest.mape(library["predicted_us"], library["time_us"])
    return row | _serving(serving, best_of_space_us, device)


def _trees(data, device):
    known, kernels = fitted.trees(data.known, device)
    return {
        "peer": "gradient-boosted trees",
        "fitted": f"to {len(data.known)} rows, and {len(data.waiting)} more for fresh GEMMs",
        **_errors(data.known, known), **_regrets(data.known, known),
        "unseen_kernel_mape_pct": contest.mape(kernels, data.known["time_us"]),
        **_fresh(data.fresh, fitted.trees_fresh(data, device)),
    }


def _nvmatmul(data, serving, device, environment):
    of_kernels = NvMatmul(environment, device, NVMATMUL_KERNELS, NVMATMUL_FLAGS)
    of_library = NvMatmul(environment, device, NVMATMUL_LIBRARY, NVMATMUL_FLAGS)
    known, fresh = (of_kernels.estimate_us(part) for part in (data.known, data.fresh))
    library = of_library.best_us(data.library, "fp16")
    estimates = {"peer": "nvMatmulHeuristics, its times"}
    estimates |= _unfitted(data, known) | _regrets(data.known, known)
    estimates |= _fresh(data.fresh, _of_all(data.fresh, fresh))
    estimates["library_mape_pct"] = contest.mape(library, data.library["time_us"])
    # A linear layer's weights lie along k.
    estimates |= _serving(
        serving, lambda part, _: of_library.best_us(part, "bf16", trans_b=True), device)
    picked, shares = of_kernels.picks(data.known)
    picks = {"peer": "nvMatmulHeuristics, its picks"} | _regrets(data.known, picked)
    return [estimates, picks | {f"pick_{name}_share": share for name, share in shares.items()}]


def _roofline(data, serving, device):
    known = rules.roofline_us(data.known, device)
    fresh = rules.roofline_us(data.fresh, device)
    library = rules.roofline_us(data.library, device)
    return {
        "peer": "plain roofline", **_unfitted(data, known), **_regrets(data.known, known),
        **_fresh(data.fresh, _of_all(data.fresh, fresh)),
        "library_mape_pct": contest.mape(library, data.library["time_us"]),
        **_serving(serving, lambda part, of: rules.roofline_us(part, of, "bf16"), device),
    }


def _granularity(data, device):
    """With one rate for all kernels, and, as Tensile has it, with one for each."""
    known = rules.granularity_us(data.known, device)
    fresh = _of_all(data.fresh, rules.granularity_us(data.fresh, device))
    measured = data.known["time_us"].to_numpy()
    kernel, kernel_fresh = contest.kernel_numbers(data.known, data.fresh)
    each = contest.scaled_by_kernel(known, measured, kernel, contest.folds(data.known))
    factors = pd.Series(measured / known).groupby(kernel).median()
    return [{
        "peer": name, "fitted": fit, "scaled_mape_pct": contest.mape(times, measured),
        **_regrets(data.known, times),
        "fresh_regret": contest.regret(data.fresh, of_all, contest.FRESH_CONTEST),
    } for name, fit, times, of_all in (
        ("Tensile granularity", "a rate", _scaled_us(data, known), fresh),
        ("the same, a rate a kernel", f"{len(factors)} rates", each,
         fresh * factors.reindex(kernel_fresh).to_numpy()))]


def _rocblas(data, device):
    """Both rules choose a kernel by measured times alone; fresh GEMMs then run all at once."""
    rows = []
    for name, score in (
            ("rocBLAS CUEfficiency *", rules.per_unit_score),
            ("fastest alone *", lambda part, _: part["isolated_us"].to_numpy())):
        at_once = data.fresh["concurrency_degree"] == data.fresh["waiting"]
        fresh = np.where(at_once, score(data.fresh, device), np.nan)
        rows.append({
            "peer": name,
            **_regrets(data.known, score(data.known, device)),
            "fresh_regret": contest.regret(data.fresh, fresh, contest.FRESH_CONTEST)})
    return rows


def _of_all(table, once):
    """Time of all that wait, from that of one launch on each branch."""
    return once * contest.launches(table)


def _errors(table, predicted):
    measured = table["time_us"].to_numpy()
    error = np.abs(predicted / measured - 1)
    found = {
        "mape_pct": contest.mape(predicted, measured),
        "median_ape_pct": float(np.nanmedian(error) * 100)}
    for degree in np.unique(table["concurrency_degree"]):
        at = (table["concurrency_degree"] == degree).to_numpy()
        found[f"mape_pct_{degree}"] = contest.mape(predicted[at], measured[at])
    return found


def _unfitted(data, predicted):
    """Errors of a peer that is fitted to nothing: to it every kernel is unseen."""
    found = _errors(data.known, predicted)
    return found | {
        "unseen_kernel_mape_pct": found["mape_pct"], "scaled_mape_pct": _scaled(data, predicted)}


def _scaled(data, predicted):
    return contest.mape(_scaled_us(data, predicted), data.known["time_us"])


def _scaled_us(data, predicted):
    measured = data.known["time_us"].to_numpy()
    return contest.scaled(predicted, measured, contest.folds(data.known))


def _regrets(table, score):
    return {f"regret_{degree}": value for degree, value in contest.regret(table, score).items()}


def _fresh(table, predicted):
    return {
        "fresh_mape_pct": contest.mape(predicted, table["time_us"]),
        "fresh_regret": contest.regret(table, predicted, contest.FRESH_CONTEST)}


def _serving(rows, predict, device):
    if rows is None:
        return {}
    predicted = predict(rows, device)
    error = np.abs(predicted / rows["time_us"].to_numpy() - 1)
    return {"serving_mape_pct": contest.mape(predicted, rows["time_us"]),
            "serving_median_ape_pct": float(np.nanmedian(error) * 100)}


def _printed(found):
    shown = [name for name in PRINTED if name in found]
    return table([PRINTED[name] for name in shown], [
        [_cell(name, row[name]) for name in shown] for _, row in found.iterrows()])


def _cell(name, value):
    if isinstance(value, str):
        return value
    if not np.isfinite(value):
        return "-"
    return f"{value:.3f}" if "regret" in name else f"{value:.1f}"


if __name__ == "__main__":
    try:
        main()
    except ValueError as refused:
        sys.exit(_one_line(refused, 2))
    except RuntimeError as failed:
        sys.exit(_one_line(failed, 1))
