"""python3 alone_shards.py OUT

Compares the work of a rank alone of plans with context and expert parallelism with that of one device that trains the whole
network on as many tokens: multiply-adds of the linear layers, of attention and of the experts, and the elements of dense and
expert weights and of the optimizer's states. Writes JSON: a list of (plan, of the rank, of one device).
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from typing import Any

import torch

from pacer_worker import alone
from pacer_worker.check import CPU, MODELS, OPTIONS
from pacer_worker.config import Config
from pacer_worker.engine import build
from pacer_worker.phases import no_clock

CASES: list[tuple[str, dict[str, Any]]] = [
    ("gpt", {"cp": 2, "mb": 2}),
    ("llama", {"cp": 4, "mb": 2, "dp": 2, "zero": 1}),
    ("llama", {"cp": 2, "tp": 2, "mb": 2, "sp": True}),
    ("moe", {"ep": 2, "dp": 2, "mb": 2}),
    ("moe", {"ep": 4, "dp": 8, "mb": 2, "zero": 1}),
    ("moe", {"ep": 2, "tp": 2, "dp": 2, "mb": 2, "sp": True, "ga": 2}),
    ("moe", {"ep": 2, "cp": 2, "dp": 1, "mb": 2, "pp": 5, "ga": 5}),
]


def work(model: str, plan: dict[str, Any], stage: int) -> dict[str, float]:
    config = {"model": {"name": model, **MODELS[model]}, "plan": plan, "alone_stage": stage}
    if stage:
        alone.join(Config.read(config))
    engine = build(config, CPU, OPTIONS)
    engine.step(no_clock)
    with torch.autograd.profiler.profile(record_shapes=True) as seen:
        engine.step(no_clock)
    out = {"linear": 0.0, "attention": 0.0, "dense": 0.0, "expert": 0.0, "states": 0.0}
    for event in seen.function_events:
        name, shapes = event.name.removeprefix("aten::"), event.input_shapes
        if name in ("mm", "addmm"):
            (m, k), (_, n) = shapes[-2:] if name == "mm" else shapes[1:3]
            out["linear"] += m * k * n
        elif name == "bmm":
            (b, m, k), (_, _, n) = shapes[:2]
            out["attention"] += b * m * k * n
    for weight, tensor in engine.tensors():
        out["expert" if weight.name.endswith((".experts.up", ".experts.down")) else "dense"] += tensor.numel()
    for part in getattr(engine.optimizer, "parts", [engine.optimizer]):
        states = getattr(part, "optim", part).state  # of ZeroRedundancyOptimizer's share
        out["states"] += sum(x.numel() for state in states.values() for x in state.values() if x.dim())
    return out


def rank_main(queue: Any, model: str, plan: dict[str, Any], stage: int) -> None:
    torch.set_num_threads(1)
    queue.put(work(model, plan, stage))


def run(model: str, plan: dict[str, Any], stage: int) -> dict[str, float]:
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    process = fork.Process(target=rank_main, args=(queue, model, plan, stage))
    process.start()
    found = queue.get(timeout=100)
    process.join()
    return found


if __name__ == "__main__":
    rows = []
    for model, plan in CASES:
        whole = {key: plan[key] for key in ("mb", "ga") if key in plan}
        rows.append({"model": model, "plan": plan, "rank": run(model, plan, 1), "one": run(model, whole, 0)})
    with open(sys.argv[1], "w") as f:
        json.dump(rows, f)
