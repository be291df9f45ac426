"""The phases of a step: modules name the phase, the clock of the step times it."""

from __future__ import annotations

import contextlib
from typing import Callable, ContextManager

Clock = Callable[[str], ContextManager[object]]


def no_clock(_: str) -> ContextManager[object]:
    return contextlib.nullcontext()


class Phases:
    """Forwards to the clock of the current step.

    Modules are built once, but each step has its own clock, so they hold this
    instead. Backward passes may call it from autograd's own threads, one at a
    time, while the main thread waits.
    """

    def __init__(self) -> None:
        self.clock: Clock = no_clock

    def __call__(self, phase: str) -> ContextManager[object]:
        return self.clock(phase)
