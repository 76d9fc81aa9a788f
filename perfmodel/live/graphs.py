"""Branches of launches captured in one graph, and the time of its replays."""

import contextlib
import statistics

import torch

from perfmodel.live.arrangement import Timing

#: Timings of which the median is taken, warm and cold.
WARM_TIMINGS = 3
COLD_TIMINGS = 9

#: What one warm timing aims at: enough for the events' resolution, short enough that the chip does
#: not heat up over one row [s].
_BURST_SECONDS = 0.8e-3
_FEWEST, _MOST = 1, 200

#: What is read to empty L2 is this many times as large, and at least so much: AMD tells the size of
#: one die's L2 of several [B].
_FLUSH_SHARE = 4
_FLUSH_LEAST = 2**27


class Graphs:
    """Captures branches on streams of its own and times them.

    Parameters
    ----------
    captured : bool
        Whether to capture in graphs; else branches are launched on plain streams each time, and
        the host's launches are in the time.
    """

    def __init__(self, captured=True):
        self.captured = captured
        self._main = torch.cuda.Stream()
        self._side = []
        self._unread = None

    def timed(self, branches, cold, sample=None):
        """Time of the branches, from the start of the first launch to the end of the last.

        Parameters
        ----------
        branches : list of list of callable
            Each launches one kernel on the stream it is given.
        cold : bool
            Whether L2 is emptied before each timing.
        sample : callable, optional
            Called once while the GPU is at work.

        Returns
        -------
        Timing
        """
        while len(self._side) < len(branches) - 1:
            self._side.append(torch.cuda.Stream())
        with torch.cuda.stream(self._main):
            replay = self._capture(branches) if self.captured else (
                lambda: self._launch(branches))
            replay()
            times = self._cold(replay, sample) if cold else self._warm(replay, sample)
        median = statistics.median(times)
        return Timing(median, (max(times) - min(times)) / median)

    def _capture(self, branches):
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        try:
            self._launch(branches)
        except BaseException:
            # Left halfway, also by an interrupt: that is the reason, not what the end says of it.
            with contextlib.suppress(RuntimeError):
                graph.capture_end()
            raise
        graph.capture_end()
        return graph.replay

    def _launch(self, branches):
        """Fork from the main stream, launch every branch on its own, join."""
        streams = [self._main, *self._side[: len(branches) - 1]]
        forked = self._main.record_event()
        for stream, branch in zip(streams, branches):
            with torch.cuda.stream(stream):
                if stream is not self._main:
                    stream.wait_event(forked)
                for launch in branch:
                    launch(stream)
        for stream in streams[1:]:
            self._main.wait_event(stream.record_event())

    def _warm(self, replay, sample):
        first = _elapsed(replay)
        replays = int(min(max(_BURST_SECONDS / first, _FEWEST), _MOST))
        events = [_event() for _ in range(WARM_TIMINGS + 1)]
        events[0].record()
        for event in events[1:]:
            for _ in range(replays):
                replay()
            event.record()
        if sample:
            sample()
        events[-1].synchronize()
        return [
            begin.elapsed_time(end) * 1e-3 / replays for begin, end in zip(events, events[1:])]

    def _cold(self, replay, sample):
        if self._unread is None:
            l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
            size = max(l2_bytes * _FLUSH_SHARE, _FLUSH_LEAST)
            self._unread = torch.ones(size // 4, device="cuda", dtype=torch.int32)
        pairs = [(_event(), _event()) for _ in range(COLD_TIMINGS)]
        for begin, end in pairs:
            # Reading leaves no lines that would have to be written back.
            self._unread.sum()
            begin.record()
            replay()
            end.record()
        if sample:
            sample()
        pairs[-1][1].synchronize()
        return [begin.elapsed_time(end) * 1e-3 for begin, end in pairs]


def can_capture():
    """Whether streams can be captured in graphs here."""
    word = torch.zeros(1, device="cuda")
    try:
        return Graphs().timed([[lambda stream: word.add_(1)]], cold=False).seconds > 0
    except (AttributeError, RuntimeError):
        return False


def _elapsed(replay):
    begin, end = _event(), _event()
    begin.record()
    replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3


def _event():
    return torch.cuda.Event(enable_timing=True)
