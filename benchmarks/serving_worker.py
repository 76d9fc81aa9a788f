"""Reads aiconfigurator-core's measured GEMMs in its own virtual environment, writes CSV.

Arguments: system, dtype. Columns: framework, version, m, n, k, time_us. The data is NVIDIA's
(Apache-2.0) and stays in the installed package.
"""

import importlib.util
import sys
from pathlib import Path

import pandas as pd

MS = 1e3  # [us]


def main(system, dtype):
    """Write the rows of every framework that was measured on a system."""
    package = importlib.util.find_spec("aiconfigurator_core").submodule_search_locations[0]
    tables = []
    folder = Path(package, "systems", "data", system, "gemm")
    for path in sorted(folder.glob("*/*/gemm_perf.parquet")):
        table = pd.read_parquet(path)
        table = table[table["gemm_dtype"] == dtype].assign(
            framework=path.parts[-3], version=path.parts[-2])
        tables.append(table.assign(time_us=table["latency"] * MS))
    columns = ["framework", "version", "m", "n", "k", "time_us"]
    pd.concat(tables)[columns].to_csv(sys.stdout, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
