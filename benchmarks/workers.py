"""Peers in virtual environments of their own: called as programs, tables go in and come out."""

import io
import subprocess
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent


def ask(environment, worker, arguments, question=None):
    """What a worker answers, DataFrame; None where its virtual environment is not there.

    Parameters
    ----------
    environment : path
        Virtual environment that has what the worker needs.
    worker : str
        File of this folder.
    arguments : sequence of str
    question : DataFrame, optional
        Goes to its standard input.

    Raises
    ------
    RuntimeError
        If the worker fails.
    """
    python = Path(environment, "bin", "python")
    if not python.exists():
        return None
    done = subprocess.run(
        [python, HERE / worker, *arguments], check=False, capture_output=True, text=True,
        input="" if question is None else question.to_csv(index=False))
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise RuntimeError(f"{worker} in {environment}: {last}")
    return pd.read_csv(io.StringIO(done.stdout))
