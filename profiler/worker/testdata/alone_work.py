"""python3 alone_work.py OUT

Compares the work of a rank that runs alone with that of the same rank among the others, on small networks: the matrix
products, normalizations and copies of a step with their shapes, and the tensors that the rank holds. Writes JSON: a list
of (model, plan, stage, equal, differences).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from typing import Any

import torch
import torch.distributed as dist

from pacer_worker import alone
from pacer_worker.check import CPU, MODELS, OPTIONS
from pacer_worker.config import Config
from pacer_worker.engine import build
from pacer_worker.phases import no_clock

CASES: list[tuple[str, dict[str, Any]]] = [
    ("gpt", {"tp": 2, "mb": 4}),
    ("gpt", {"tp": 2, "mb": 4, "sp": True, "ga": 2}),
    ("llama-kv1", {"tp": 2, "mb": 2, "recompute": "full"}),
    ("gpt", {"pp": 2, "mb": 2, "ga": 4}),
    ("llama", {"pp": 3, "mb": 1, "ga": 4}),
    ("bert", {"dp": 2, "pp": 2, "mb": 2, "ga": 2}),
    ("gpt", {"dp": 2, "mb": 2, "ga": 2}),
    ("gpt", {"dp": 2, "mb": 4, "zero": 1}),
    ("moe", {"tp": 2, "mb": 2}),
    ("t5", {"tp": 2, "pp": 2, "mb": 2, "ga": 2}),
]
WORK = ("mm", "addmm", "bmm", "baddbmm", "native_layer_norm", "_softmax", "embedding", "gelu", "silu", "topk")


def work(model: str, plan: dict[str, Any], stage: int) -> dict[str, Any]:
    """Returns the operations of the second step by name and shapes, and the shapes of the weights by name."""
    config = {"model": {"name": model, **MODELS[model]}, "plan": plan, "alone_stage": stage}
    if stage:
        alone.join(Config.read(config))
    engine = build(config, CPU, OPTIONS)
    engine.step(no_clock)
    with torch.autograd.profiler.profile(record_shapes=True) as seen:
        engine.step(no_clock)
    ops: Counter[str] = Counter()
    for event in seen.function_events:
        name = event.name.removeprefix("aten::")
        if name in WORK:
            ops[f"{name} {event.input_shapes}"] += 1
    routed = MODELS[model].get("experts")  # how many tokens an expert gets depends on the sums that are left out
    held = {weight.name: list(tensor.shape) for weight, tensor in engine.tensors()}
    return {"ops": Counter() if routed else ops, "held": held}


def rank_main(rank: int, world: int, folder: str, model: str, plan: dict[str, Any], stage: int) -> None:
    torch.set_num_threads(1)
    if not stage:
        store = os.path.join(folder, "store")
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    with open(os.path.join(folder, f"{stage}-{rank}"), "w") as f:
        json.dump(work(model, plan, stage), f)
    if not stage:
        dist.barrier()


def compare(model: str, plan: dict[str, Any]) -> list[dict[str, Any]]:
    world, pp = plan.get("dp", 1) * plan.get("tp", 1) * plan.get("pp", 1), plan.get("pp", 1)
    with tempfile.TemporaryDirectory() as folder:
        started = [(rank, 0) for rank in range(world)] + [(0, stage) for stage in range(1, pp + 1)]
        fork = multiprocessing.get_context("fork")
        processes = [fork.Process(target=rank_main, args=(r, world, folder, model, plan, s)) for r, s in started]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        if any(process.exitcode for process in processes):
            sys.exit(f"{model} {plan}: a process failed")
        found = []
        for stage in range(1, pp + 1):
            among, by_itself = (
                json.load(open(os.path.join(folder, name))) for name in (f"0-{(stage - 1) * world // pp}", f"{stage}-0")
            )
            differ = [f"{kind} {key}" for kind in among for key in {**among[kind], **by_itself[kind]}
                      if among[kind].get(key) != by_itself[kind].get(key)]
            equal = sum(len(among[kind]) for kind in among) - len(differ)
            found.append({"model": model, "plan": plan, "stage": stage, "equal": equal, "differences": differ})
        return found


if __name__ == "__main__":
    out = [row for model, plan in CASES for row in compare(model, plan)]
    with open(sys.argv[1], "w") as f:
        json.dump(out, f)
