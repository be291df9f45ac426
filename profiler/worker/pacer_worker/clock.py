"""Clocks that split a step into phases.

`with clock("forward"):` counts the time inside as that phase. Phases nest, and
the time of a phase excludes the phases nested in it. Time in no phase is "other".
Only one thread at a time may enter or leave a phase.
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
        self._marks: list[tuple[Any, str]] = []  # (time, phase that begins then)
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
        """Returns the seconds spent in each phase since start."""
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

    Time in which the device waits for another stream or for the host counts for the
    phase that is open then.
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
