"""Clocks that split a step into phases.

`with clock("forward"):` counts the time inside as that phase. Phases nest, and
a phase does not count what those inside it take. Time in no phase is "other".
The phases are entered and left by one thread at a time.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any, Iterator

import torch

OTHER = "other"


class HostClock:
    """Counts host time: correct if work is done when a call returns, as on the CPU."""

    def __init__(self) -> None:
        self._marks: list[tuple[Any, str]] = []  # a moment, and the phase that begins then
        self._open = [OTHER]

    def start(self) -> None:
        self._open = [OTHER]
        self._marks = [(self._now(), OTHER)]

    @contextlib.contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        self._open.append(phase)
        self._marks.append((self._now(), phase))
        try:
            yield
        finally:
            self._open.pop()
            self._marks.append((self._now(), self._open[-1]))

    def stop(self) -> dict[str, float]:
        """Returns the seconds of every phase since start."""
        self._marks.append((self._now(), OTHER))
        self._settle()
        spent: dict[str, float] = {}
        for (begin, phase), (end, _) in zip(self._marks, self._marks[1:]):
            spent[phase] = spent.get(phase, 0.0) + self._between(begin, end)
        return spent

    def _now(self) -> Any:
        return time.perf_counter()

    def _settle(self) -> None:
        pass

    def _between(self, begin: Any, end: Any) -> float:
        return end - begin


class EventClock(HostClock):
    """Counts device time between CUDA events on the current stream.

    What the device waits for, another stream or the host, is time of the phase
    it waits in.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device
        self._stream = torch.cuda.current_stream(device)

    def _now(self) -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record(self._stream)
        return event

    def _settle(self) -> None:
        torch.cuda.synchronize(self._device)

    def _between(self, begin: Any, end: Any) -> float:
        return begin.elapsed_time(end) / 1e3  # milliseconds


def clock_for(device: torch.device) -> HostClock:
    return EventClock(device) if device.type == "cuda" else HostClock()
