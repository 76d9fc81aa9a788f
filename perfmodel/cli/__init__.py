"""The command line: ``perfmodel COMMAND``, also ``python -m perfmodel``.

Each command is a module with `add_parser` and `run`; heavy imports are inside `run`, so that help
and refusals are quick.
"""

import argparse
import os
import re
import signal
import sys

from perfmodel import __version__
from perfmodel.cli import calibrate, devices, figures, measure, predict, space, validate

COMMANDS = (devices, predict, space, measure, calibrate, validate, figures)

BAD_INPUT = 2
FAILED = 1


class Parser(argparse.ArgumentParser):
    """A parser whose refusals are one line."""

    def error(self, message):
        self.exit(BAD_INPUT, f"{self.prog}: {message}\n")


def parser():
    """The parser of all commands."""
    top = Parser(
        prog="perfmodel", description="Time of GEMMs that share a chip, in closed form.",
        epilog="example: perfmodel predict h200 --gemm 512x1024x2048 --degree 8",
    )
    top.add_argument("--version", action="version", version=f"perfmodel {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return top


def main(arguments=None):
    """Run one command; returns its exit code: 0, 1 could not be done, 2 bad input."""
    if sys.stdout is None:  # closed by the caller: nobody reads what is said
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
    given = parser().parse_args(_joined(sys.argv[1:] if arguments is None else arguments))
    try:
        given.run(given)
        sys.stdout.flush()
    except ValueError as error:
        return _refuse(given, error, BAD_INPUT)
    except BrokenPipeError:
        # The reader has gone; what is still buffered goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        named = f"{error.strerror}: {error.filename or 'standard output'}"
        return _refuse(given, named if error.strerror else error, FAILED)
    except ModuleNotFoundError as error:
        return _refuse(given, f"{error}: perfmodel is not installed whole (pip install .)", FAILED)
    except KeyboardInterrupt:
        return _refuse(given, "interrupted; every file written is whole", 128 + signal.SIGINT)
    return 0


def _joined(arguments):
    """The arguments with ``--gemm -1x2x3`` as one word: else the value is taken for an option."""
    joined = []
    for word in arguments:
        follows = joined and joined[-1].startswith("--") and "=" not in joined[-1]
        if follows and re.match(r"-\d", word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _refuse(given, error, code):
    sys.stderr.write(f"perfmodel {given.command}: {error}\n")
    return code
