"""Measuring one configuration: warm-up, timed steps, phases.

Every rank runs the same number of steps: after each step, outside the timed part,
the ranks exchange their times and take the same decision.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, Callable

from pacer_worker.clock import OTHER, HostClock, clock_for
from pacer_worker.interval import half_width, median
from pacer_worker.phases import no_clock
from pacer_worker.process import Process

# Warm-up continues until the medians of two consecutive windows of WINDOW steps
# differ by at most STEADY of the smaller.
WINDOW = 3
STEADY = 0.05
MAX_WARMUP = 20
# Warm-up and the steps that measure phases may each take this share of max_time_s, the
# time limit of the timed steps. The first warm-up step does not count: it compiles,
# allocates and loads. At least one step measures phases, unless max_time_s is less than
# two steps; then none does.
WARMUP_SHARE = 0.5
PHASE_SHARE = 0.25
MAX_PHASE_STEPS = 5
PHASES = ("forward", "backward", "communication", "wait", "optimizer", OTHER)


class BadLoss(Exception):
    """The loss is not a finite number."""


@dataclass
class Loop:
    """Steps of one kind, and why they stopped."""

    seconds: list[float] = field(default_factory=list)
    stopped: str = ""


class Measurer:
    """Runs steps of an engine and times them.

    A step's time begins when every rank is ready and ends when this rank's device
    has finished. The largest time over the ranks is the measured one.
    """

    def __init__(self, process: Process, engine: Any, request: dict[str, Any]) -> None:
        self.process, self.engine, self.request = process, engine, request
        self.losses: list[float] = []  # of every step with a loss on this rank
        self.steps = 0

    def warm_up(self) -> Loop:
        def enough(seconds: list[float], spent: float) -> str:
            if len(seconds) < 2:
                return ""
            if spent - seconds[0] > WARMUP_SHARE * self.request["max_time_s"]:
                return "max_time"
            if spent - seconds[0] < self.request["min_time_s"]:
                return ""
            if steady(seconds):
                return "steady"
            return "max_steps" if len(seconds) >= MAX_WARMUP else ""

        return self._loop(enough)

    def timed(self) -> Loop:
        def enough(seconds: list[float], spent: float) -> str:
            if spent < self.request["min_time_s"]:  # min_time_s <= max_time_s
                return ""
            if len(seconds) >= self.request["min_steps"]:
                reached = half_width(seconds)
                if reached is not None and reached <= self.request["interval"]:
                    return "interval"
            if len(seconds) >= self.request["max_steps"]:
                return "max_steps"
            return "max_time" if spent >= self.request["max_time_s"] else ""

        return self._loop(enough)

    def _loop(self, enough: Callable[[list[float], float], str]) -> Loop:
        loop, begin = Loop(), time.perf_counter()
        while not loop.stopped:
            loop.seconds.append(self._step())
            spent = self.process.largest([time.perf_counter() - begin])[0]
            loop.stopped = enough(loop.seconds, spent)
        return loop

    def _step(self) -> float:
        begin = time.perf_counter()
        loss = self.engine.step(no_clock)
        self.process.synchronize()
        seconds = time.perf_counter() - begin
        self.steps += 1
        value = None if loss is None or self.process.groups else float(loss)  # the loss of a rank alone means nothing
        if value is not None:
            self.losses.append(value)
        bad = 0.0 if value is None or math.isfinite(value) else (2.0 if math.isnan(value) else 1.0)
        seconds, bad = self.process.largest([seconds, bad])
        if bad:
            raise BadLoss(f"loss is {'nan' if bad > 1 else 'infinite'} after step {self.steps}")
        return seconds

    def phases(self, step_seconds: float) -> dict[str, float]:
        """Returns the seconds of each phase of a step; empty if there is no time to measure them.

        A few more steps are run. The times are those of the step with the median
        duration, averaged over the ranks and scaled to step_seconds.

        Data-parallel communication overlaps the backward pass. To measure it, every
        second step leaves it out: the time by which it lengthens a step, less what is
        counted as communication already, moves from "backward" to "communication".
        """
        fit = self.request["max_time_s"] / step_seconds  # step_seconds is the same on every rank
        if fit < 2:
            return {}
        n = min(max(int(PHASE_SHARE * fit), 1), MAX_PHASE_STEPS)
        clock, skips = clock_for(self.process.device), self.engine.can_skip_sync
        seen, hidden, least = [], [], math.inf
        for _ in range(n):
            total, spent = self._split(clock, sync=True)
            seen.append((total, spent))
            if skips:
                without, alone = self._split(clock, sync=False)
                hidden.append(total - spent["communication"] - (without - alone["communication"]))
                least = min(least, alone["backward"])
        total, spent = sorted(seen, key=lambda step: step[0])[(n - 1) // 2]
        if skips:
            moved = max(min(median(hidden), spent["backward"] - least), 0.0)
            spent["backward"] -= moved
            spent["communication"] += moved
        spent[OTHER] = max(total - sum(s for phase, s in spent.items() if phase != OTHER), 0.0)
        scale = step_seconds / sum(spent.values())
        return {phase: s * scale for phase, s in spent.items() if s > 0 or skips and phase == "communication"}

    def _split(self, clock: HostClock, sync: bool) -> tuple[float, dict[str, float]]:
        """Runs a step; returns its seconds and the seconds of each phase."""
        begin = time.perf_counter()
        clock.start()
        self.engine.step(clock, sync=sync)
        spent = clock.stop()
        self.process.synchronize()
        return self.process.largest([time.perf_counter() - begin])[0], self._mean(spent)

    def _mean(self, spent: dict[str, float]) -> dict[str, float]:
        """Returns the mean over the ranks of every phase; a phase absent on a rank counts as 0."""
        unknown = set(spent) - set(PHASES)
        if unknown:
            raise ValueError(f"the engine counts unknown phases: {', '.join(sorted(unknown))}")
        return dict(zip(PHASES, self.process.mean([spent.get(phase, 0.0) for phase in PHASES])))


def steady(seconds: list[float]) -> bool:
    """Reports whether the last steps are as fast as those before them."""
    if len(seconds) < 2 * WINDOW:
        return False
    last, before = median(seconds[-WINDOW:]), median(seconds[-2 * WINDOW : -WINDOW])
    return abs(last - before) <= STEADY * min(last, before)
