"""Runs recorded on a GPU and played back where there is none."""

import json

from perfmodel.files import write_text_atomic
from perfmodel.live.arrangement import Timing
from perfmodel.live.readings import Reading


class Recorder:
    """A runner that passes everything on to another and notes the answers.

    Parameters
    ----------
    runner : runner.GpuRunner
    """

    def __init__(self, runner):
        self._runner = runner
        self.backend = runner.backend
        self._notes = {"backend": runner.backend, "gpu": runner.gpu(), "prepare": {}, "check": {},
                       "time": {}, "state": {}}

    def gpu(self):
        return self._runner.gpu()

    def readings(self, advance):
        found = self._runner.readings(advance)
        self._notes["readings"] = {field: vars(reading) for field, reading in found.items()}
        return found

    def prepare(self, kernels, gemms, setting, advance):
        rows, failed = self._runner.prepare(kernels, gemms, setting, advance)
        noted = [[list(kernel), reason] for kernel, reason in failed.items()]
        self._notes["prepare"][_setting_text(setting)] = {"rows": rows, "failed": noted}
        return rows, failed

    def check(self, gemm, kernel, setting):
        reason = self._runner.check(gemm, kernel, setting)
        self._notes["check"][_check_text(gemm, kernel, setting)] = reason
        return reason

    def time(self, branches, setting):
        timing = self._runner.time(branches, setting)
        self._notes["time"][_time_text(branches, setting)] = [timing.seconds, timing.spread]
        return timing

    def state(self):
        self._notes["state"] = self._runner.state()
        return self._notes["state"]

    def save(self, path):
        """Write the notes as JSON, whole or not at all."""
        write_text_atomic(path, json.dumps(self._notes, indent=0) + "\n")


class Recorded:
    """A runner that answers from the notes of a `Recorder`.

    Parameters
    ----------
    notes : dict
        As `Recorder.save` writes them.
    """

    def __init__(self, notes):
        self._notes = notes
        self.backend = notes["backend"]

    def gpu(self):
        return self._notes["gpu"]

    def readings(self, advance):
        for field in self._notes["readings"]:
            advance(field)
        return {field: Reading(**noted) for field, noted in self._notes["readings"].items()}

    def prepare(self, kernels, gemms, setting, advance):
        noted = self._notes["prepare"][_setting_text(setting)]
        for _ in kernels:
            advance()
        return noted["rows"], {tuple(kernel): reason for kernel, reason in noted["failed"]}

    def check(self, gemm, kernel, setting):
        return self._notes["check"][_check_text(gemm, kernel, setting)]

    def time(self, branches, setting):
        text = _time_text(branches, setting)
        if text not in self._notes["time"]:
            raise LookupError(f"not in the record: {text}")
        return Timing(*self._notes["time"][text])

    def state(self):
        return self._notes["state"]


def _check_text(gemm, kernel, setting):
    return f"{_setting_text(setting)} {_launch_text(gemm, kernel)}"


def _time_text(branches, setting):
    """Setting, then each branch's launches; those of one GEMM and kernel by their operands."""
    parts = []
    for branch in branches:
        runs = []
        for launch in branch:
            name = _launch_text(launch.gemm, launch.kernel)
            if runs and runs[-1][0] == name:
                runs[-1][1].append(launch.operands)
            else:
                runs.append((name, [launch.operands]))
        parts.append(";".join(f"{name}:{','.join(map(str, numbers))}" for name, numbers in runs))
    return " | ".join([_setting_text(setting), *parts])


def _launch_text(gemm, kernel):
    return f"{'x'.join(map(str, gemm))}/{'.'.join(map(str, kernel)) if kernel else 'library'}"


def _setting_text(setting):
    return (f"{setting.dtype}{' T' if setting.transposed_b else ''}"
            f"{' cold' if setting.cold else ''} {setting.carveout_pct}")
