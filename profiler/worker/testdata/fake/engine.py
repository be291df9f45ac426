"""An engine that trains nothing: it sleeps and fails as config["fake"] says, or
without that the JSON that is the name of the model.

seconds   of the steps, in turn
hidden_s  of each, left out without sync
loss      {step: value}, else 1.0; steps count from 1
fail      {"step": 0 = while building, "rank": of the rank, "kind": see fail}
"""

from __future__ import annotations

import json
import os
import signal
import time

import torch

from pacer_worker.unsupported import Unsupported


def build(config, device, options):
    return Engine(config["fake"] if "fake" in config else json.loads(config["model"]["name"]))


class Engine:
    parameters = 1000
    notes = {"attention": "none"}

    def __init__(self, fake):
        self.fake, self.steps = fake, 0
        self.can_skip_sync = "hidden_s" in fake
        self.fail()

    def step(self, clock, sync=True):
        self.steps += 1
        self.fail()
        seconds = self.fake.get("seconds", [0.01])
        seconds = seconds[(self.steps - 1) % len(seconds)]
        with clock("forward"):
            time.sleep(0.2 * seconds)
        with clock("backward"):
            time.sleep(0.3 * seconds)
            with clock("communication"):
                time.sleep(0.1 * seconds)
            time.sleep(0.2 * seconds)
            if sync:
                time.sleep(self.fake.get("hidden_s", 0))
        with clock("optimizer"):
            time.sleep(0.1 * seconds)
        time.sleep(0.1 * seconds)
        return torch.tensor(float(self.fake.get("loss", {}).get(str(self.steps), 1.0)))

    def fail(self):
        how = self.fake.get("fail", {"step": -1})
        if how["step"] != self.steps or how.get("rank", 0) != int(os.environ.get("RANK", "0")):
            return
        kind = how["kind"]
        if kind == "unsupported":
            raise Unsupported("this plan needs FSDP2, torch 2.6 or later")
        if kind == "memory":
            raise MemoryError
        if kind == "cpu allocator":
            torch.empty(1 << 60, dtype=torch.uint8)
        if kind == "cuda allocator":
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        if kind == "cublas":
            raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
        if kind == "error":
            raise ValueError("a shape\nis wrong")
        if kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "hangs":
            if os.fork() == 0:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
        if kind == "exits":
            os._exit(0)
        raise AssertionError(kind)
