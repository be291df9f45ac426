"""Times a case whose host is slow with a device that is a list, and checks the order of what the device gets."""

import math
import sys
import time
from types import SimpleNamespace

sys.path[:0] = sys.argv[1:]
import torch
from pacer_worker.machine import Case, Timer

HOST, HOLD, N = 0.002, 0.001, 5
queue = []


class Event:
    def __init__(self, enable_timing):
        pass

    def record(self):
        queue.append(self)

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return 1000.0


def run():
    time.sleep(HOST)
    queue.append("run")


torch.cuda.Event = Event
timer = Timer(SimpleNamespace(device=torch.device("cpu"), world=1, synchronize=lambda: None, largest=list))
assert not timer.held and timer.sec(Case({}, run, kernels=True), 2) >= HOST  # a CPU has the host's clock
timer.held, timer.hold_sec, timer._hold = [0], HOLD, lambda: queue.append("hold")
queue.clear()
assert timer.sec(Case({}, run), 2) < 1 and set(queue) == {"run"}  # a layer too
queue.clear()
assert math.isclose(timer.sec(Case({}, run, kernels=True), N), 1 / N)  # seconds of a run
first, *rest = queue
holds = rest.index(next(x for x in rest if isinstance(x, Event)))
assert first == "run" and rest[:holds] == ["hold"] * holds and holds * HOLD >= N * HOST, queue
assert rest[holds + 1 : holds + 1 + N] == ["run"] * N and isinstance(rest[holds + 1 + N], Event) and len(rest) == holds + N + 2, queue
