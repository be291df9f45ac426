"""python3 alone_time.py OUT TP PP

Compares the CPU time of the compute of a rank that runs alone with that of the same rank among the others, one rank a
core: once each, in an order that the process id decides. Writes JSON: stage -> [seconds among the others, seconds alone],
each the median over the steps.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from typing import Any

import torch
import torch.distributed as dist

from pacer_worker import alone
from pacer_worker.clock import HostClock
from pacer_worker.config import Config
from pacer_worker.engine import build
from pacer_worker.interval import median

MODEL = {"name": "gpt", "kind": "decoder", "layers": 2, "hidden": 192, "ffn": 768, "heads": 4, "vocab": 1000, "seq_len": 64}
WARM, STEPS = 2, 5


class CpuClock(HostClock):
    """Counts the CPU time of the thread, which does all computing on one core."""

    def _now(self) -> Any:
        return time.thread_time()


def compute(config: dict[str, Any]) -> float:
    """Returns the CPU seconds of a step outside of communication and waiting."""
    engine = build(config, torch.device("cpu"), {"seed": 1})
    clock, seconds = CpuClock(), []
    for step in range(WARM + STEPS):
        clock.start()
        engine.step(clock)
        spent = clock.stop()
        if step >= WARM:
            seconds.append(sum(s for phase, s in spent.items() if phase not in ("communication", "wait")))
    return median(seconds)


def rank_main(rank: int, folder: str, plan: dict[str, Any], stage: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[(stage - 1 if stage else rank) % len(cores)]})
    torch.set_num_threads(1)
    config = {"model": MODEL, "plan": plan, "alone_stage": stage}
    if stage:
        alone.join(Config.read(config))
    else:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    with open(os.path.join(folder, f"{stage}-{rank}"), "w") as f:
        json.dump(compute(config), f)
    if not stage:
        dist.barrier()


def run(folder: str, plan: dict[str, Any], jobs: list[tuple[int, int]]) -> None:
    processes = [multiprocessing.get_context("fork").Process(target=rank_main, args=(r, folder, plan, s)) for r, s in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        sys.exit("a process failed")


def main() -> None:
    tp, pp = int(sys.argv[2]), int(sys.argv[3])
    plan = {"tp": tp, "pp": pp, "mb": 2, "ga": 2}
    with tempfile.TemporaryDirectory() as folder:
        turns = [[(0, 0), (1, 0)]] + [[(0, stage)] for stage in range(1, pp + 1)]
        for jobs in turns if os.getpid() % 2 else reversed(turns):
            run(folder, plan, jobs)

        def read(stage: int, rank: int) -> float:
            with open(os.path.join(folder, f"{stage}-{rank}")) as f:
                return float(json.load(f))

        found = {stage: [read(0, (stage - 1) * tp), read(stage, 0)] for stage in range(1, pp + 1)}
    with open(sys.argv[1], "w") as f:
        json.dump(found, f)


if __name__ == "__main__":
    main()
