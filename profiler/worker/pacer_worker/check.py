"""python3 check.py --out FILE [--ranks 2,4] [--models gpt,llama,...]

Checks that training gives the same result under every plan as in a single process:
runs small networks on CPU processes under many plans, on the same global batch, and
compares the loss, every gradient and every weight after 1 and after 5 steps. Then it
breaks an exchange of each kind of parallelism on purpose, and checks that the
comparison detects it.

The result is JSON: cases (model, plan, steps, loss, gradient, weight: the
largest relative errors; worst: the tensor), unsupported (model, plan, why),
broken (what, model, plan, error), parameters (model, count, published) and wide
(the network parts with hidden states wider than bf16). Errors of a tensor are relative to its
largest absolute value; in gradients the query, key and value parts count as
three tensors.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import multiprocessing.connection
import os
import sys
import tempfile
from typing import Any, Callable, Iterator

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # of the package, not inside it

import torch
import torch.distributed as dist
from torch import Tensor

from pacer_worker import gradients, tensor_parallel, zero
from pacer_worker.config import Config
from pacer_worker.engine import Engine, Unsupported, build, parameters, whole_network
from pacer_worker.phases import no_clock
from pacer_worker.pipeline import Links
from pacer_worker.weights import Weight

CPU = torch.device("cpu")
BATCH = 8  # samples of the global batch
STEPS = (1, 5)
# Adam divides a gradient by its magnitude. For a gradient that is zero except for rounding,
# such as that of a key bias, the usual epsilon of 1e-8 would amplify the rounding errors.
OPTIONS = {"seed": 7, "learning_rate": 3e-3, "epsilon": 1e-2}
# Errors of a part of a tensor are relative to its largest value, but to at least this share
# of the whole tensor's largest value; again because of key biases.
FLOOR = {"gradient": 1e-2, "weight": 1.0}

SHAPE = {"layers": 5, "hidden": 32, "ffn": 48, "heads": 4, "vocab": 61, "seq_len": 16}
MODELS: dict[str, dict[str, Any]] = {
    "gpt": {"kind": "decoder", **SHAPE, "tied_embeddings": True},
    "llama": {"kind": "decoder", **SHAPE, "gated_mlp": True, "kv_heads": 2, "head_dim": 10},
    "llama-kv1": {"kind": "decoder", **SHAPE, "gated_mlp": True, "kv_heads": 1, "tied_embeddings": True},
    "moe": {
        "kind": "decoder",
        **SHAPE,
        "gated_mlp": True,
        "experts": 4,
        "experts_per_token": 2,
        "expert_ffn": 12,
        "shared_experts": 1,
        "dense_layers": 1,
    },
    "bert": {"kind": "encoder", **SHAPE, "tied_embeddings": True},
    "t5": {"kind": "encoder-decoder", **SHAPE, "tied_embeddings": True},
    "vit": {"kind": "vision", **SHAPE, "vocab": 10, "seq_len": 50},
}

# Networks of published size, to check that ours are complete: the parameter counts are
# those of torchvision and of the models' published weights.
LLAMA = {"kind": "decoder", "gated_mlp": True, "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336}
PUBLISHED: dict[str, tuple[dict[str, Any], int]] = {
    "ResNet-18": ({"kind": "opaque"}, 11689512),
    "ResNet-50": ({"kind": "opaque"}, 25557032),
    "ViT-B/16": (
        {"kind": "vision", "layers": 12, "hidden": 768, "ffn": 3072, "heads": 12, "seq_len": 197},
        86567656,
    ),
    "GPT2-XL": (
        {"kind": "decoder", "layers": 48, "hidden": 1600, "ffn": 6400, "heads": 25, "vocab": 50257, "seq_len": 1024}
        | {"tied_embeddings": True},
        1557611200,
    ),
    "BERT-base": (  # google-bert/bert-base-uncased with the masked-token head instead of the pooler
        {"kind": "encoder", "layers": 12, "hidden": 768, "ffn": 3072, "heads": 12, "vocab": 30522, "seq_len": 512}
        | {"tied_embeddings": True},
        109514298,
    ),
    "T5-3B": (
        {"kind": "encoder-decoder", "layers": 48, "hidden": 1024, "ffn": 16384, "heads": 32, "head_dim": 128}
        | {"vocab": 32128, "seq_len": 512, "tied_embeddings": True},
        2851598336,
    ),
    "Llama-3-8B": ({**LLAMA, "vocab": 128256, "seq_len": 8192}, 8030261248),
    "Mixtral-8x7B": (
        {**LLAMA, "vocab": 32000, "seq_len": 8192, "experts": 8, "experts_per_token": 2, "expert_ffn": 14336},
        46702792704,
    ),
}

Plan = dict  # JSON of a spec.Plan
PLANS: dict[int, list[Plan]] = {
    1: [
        {"mb": 2, "ga": 4},
        {"mb": 8, "recompute": "full"},
        {"mb": 8, "recompute": "selective"},
        {"mb": 4, "ga": 2, "offload": "optimizer"},
    ],
    2: [
        {"dp": 2, "mb": 4},
        {"dp": 2, "mb": 2, "ga": 2},
        {"dp": 2, "mb": 2, "ga": 2, "recompute": "full"},
        {"dp": 2, "mb": 4, "zero": 1},
        {"dp": 2, "mb": 2, "ga": 2, "zero": 1, "offload": "optimizer"},
        {"dp": 2, "mb": 2, "ga": 2, "zero": 2},
        {"dp": 2, "mb": 4, "zero": 2, "offload": "optimizer"},
        {"dp": 2, "mb": 2, "ga": 2, "zero": 3},
        {"dp": 2, "mb": 4, "zero": 3, "recompute": "full"},
        {"dp": 2, "mb": 4, "zero": 3, "offload": "params"},
        {"tp": 2, "mb": 8},
        {"tp": 2, "mb": 4, "ga": 2, "recompute": "full"},
        {"tp": 2, "mb": 8, "sp": True},
        {"tp": 2, "mb": 4, "ga": 2, "sp": True, "recompute": "full"},
        {"tp": 2, "mb": 8, "sp": True, "recompute": "selective", "offload": "optimizer"},
        {"pp": 2, "mb": 8, "ga": 1},
        {"pp": 2, "mb": 4, "ga": 2},
        {"pp": 2, "mb": 2, "ga": 4},
        {"pp": 2, "mb": 2, "ga": 4, "recompute": "full"},
        {"pp": 2, "mb": 2, "ga": 4, "recompute": "selective"},
    ],
    4: [
        {"dp": 2, "tp": 2, "mb": 2, "ga": 2, "sp": True},
        {"dp": 2, "tp": 2, "mb": 4, "zero": 1},
        {"dp": 2, "tp": 2, "mb": 4, "sp": True, "zero": 3},
        {"dp": 2, "pp": 2, "mb": 1, "ga": 4},
        {"dp": 2, "pp": 2, "mb": 4, "zero": 1},
        {"tp": 2, "pp": 2, "mb": 2, "ga": 4, "sp": True},
        {"pp": 4, "mb": 4, "ga": 2},
        {"pp": 4, "mb": 1, "ga": 8, "recompute": "full"},
        {"tp": 4, "mb": 8, "sp": True},
    ],
}

# These models run all of PLANS, the others only SOME.
ALL_PLANS = ("gpt", "llama", "bert")
SOME: dict[int, list[Plan]] = {
    1: PLANS[1][:2],
    2: [
        {"dp": 2, "mb": 2, "ga": 2, "zero": 1},
        {"tp": 2, "mb": 8, "recompute": "selective"},
        {"tp": 2, "mb": 4, "ga": 2, "sp": True, "recompute": "full"},
        {"pp": 2, "mb": 4, "ga": 2},
    ],
    4: [{"tp": 2, "pp": 2, "mb": 4, "ga": 2, "sp": True}, {"pp": 4, "mb": 2, "ga": 4}, {"tp": 4, "mb": 8}],
}


@dataclasses.dataclass
class Reference:
    """The result of the single process after some steps; full tensors by name."""

    loss: float
    gradients: dict[str, Tensor]
    weights: dict[str, Tensor]


def run(model: str, plan: Plan, sync: bool = True) -> Iterator[tuple[int, float | None, Engine]]:
    """Trains, and yields after each number of steps in STEPS."""
    engine = build({"model": {"name": model, **MODELS[model]}, "plan": plan}, CPU, OPTIONS)
    for step in range(1, STEPS[-1] + 1):
        loss = engine.step(no_clock, sync=sync)
        if step in STEPS:
            yield step, None if loss is None else loss.item(), engine


def reference(model: str) -> dict[int, Reference]:
    known = {}
    for step, loss, engine in run(model, {"mb": BATCH}):
        assert loss is not None
        copies = [{w.name: t.clone() for w, t in engine.tensors(gradients=g)} for g in (True, False)]
        known[step] = Reference(loss, *copies)
    return known


def compare(known: Reference, engine: Engine, loss: float | None) -> dict[str, Any]:
    """Returns the largest errors over all ranks; every rank compares its own pieces."""
    mine: dict[str, Any] = {"loss": loss, "gradient": (0.0, ""), "weight": (0.0, ""), "names": []}
    for kind, full in (("gradient", known.gradients), ("weight", known.weights)):
        for weight, tensor in engine.tensors(gradients=kind == "gradient"):
            mine[kind] = max(mine[kind], (error(weight, tensor, full[weight.name], FLOOR[kind]), weight.name))
            mine["names"].append(weight.name)
    ranks = [mine]
    if dist.is_initialized():
        ranks = [{} for _ in range(dist.get_world_size())]
        dist.all_gather_object(ranks, mine)
    missing = set(known.weights).difference(*(rank["names"] for rank in ranks))
    assert not missing, f"no rank holds {missing}"
    losses = [rank["loss"] for rank in ranks if rank["loss"] is not None]
    worst = {kind: max(rank[kind] for rank in ranks) for kind in ("gradient", "weight")}
    return {
        "loss": abs(sum(losses) / len(losses) - known.loss) / abs(known.loss),
        "gradient": worst["gradient"][0],
        "weight": worst["weight"][0],
        "worst": max(worst.values())[1],
    }


def error(weight: Weight, tensor: Tensor, full: Tensor, floor: float) -> float:
    """Returns the largest relative error of the blocks a tensor holds; infinite for NaN."""
    expected = weight.local(full)
    assert tensor.shape == expected.shape, f"{weight.name}: {tensor.shape}, want {expected.shape}"
    axis = weight.split.axis if weight.split else 0
    lengths = [stop - start for start, stop in weight.split.ranges] if weight.split else [tensor.shape[0]]
    lengths.append(tensor.shape[axis] - sum(lengths))  # the padding
    floor *= full.abs().max().item()
    worst = 0.0
    for got, want in zip(tensor.split(lengths, axis), expected.split(lengths, axis)):
        if want.numel():
            off = (got - want).abs().max().item() / max(want.abs().max().item(), floor, 1e-30)
            worst = max(worst, off if off == off else float("inf"))
    return worst


# Each entry breaks one exchange of a kind of parallelism, in a case that must detect it.
def _identity(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    return grad, None


def _nothing(*_: object) -> None:
    pass


def _no_gradient(links: Links, **kwargs: Any) -> tuple[Tensor, ...]:
    received = EXCHANGE(links, **kwargs)
    return tuple(torch.zeros_like(x) for x in received) if kwargs.get("want_backward") else received


EXCHANGE = Links.exchange
BREAKAGES: list[tuple[str, object, str, object, str, Plan]] = [
    ("tp: backward sum", tensor_parallel._Copy, "backward", staticmethod(_identity), "gpt", {"tp": 2, "mb": 8}),
    ("sp: sum of norm gradients", gradients.PartialSums, "__call__", _nothing, "gpt", {"tp": 2, "mb": 8, "sp": True}),
    ("tp: sum over holders of a head", gradients.PartialSums, "__call__", _nothing, "llama-kv1", {"tp": 2, "mb": 8}),
    ("pp: gradient sent back", Links, "exchange", _no_gradient, "llama", {"pp": 2, "mb": 4, "ga": 2}),
    ("pp: sum of tied embeddings", gradients.SharedSums, "__call__", _nothing, "bert", {"pp": 2, "mb": 8}),
    ("dp: average", None, "", None, "gpt", {"dp": 2, "mb": 4}),
    ("zero=1: broadcast of weights", zero, "sharded_optimizer", None, "gpt", {"dp": 2, "mb": 4, "zero": 1}),
]


def _unsynced(*args: Any, **kwargs: Any) -> torch.optim.Optimizer:
    optimizer = SHARDED(*args, **kwargs)
    optimizer._sync_params = _nothing  # type: ignore[method-assign]
    return optimizer


SHARDED: Callable[..., Any] = zero.sharded_optimizer


def broken(known: dict[str, dict[int, Reference]]) -> Iterator[dict[str, Any]]:
    for what, owner, attribute, instead, model, plan in BREAKAGES:
        if model not in known:
            continue
        before = vars(owner)[attribute] if owner else None
        if owner:
            setattr(owner, attribute, instead or _unsynced)
        try:
            step, loss, engine = next(run(model, plan, sync=owner is not None))
            found = compare(known[model][step], engine, loss)
        finally:
            if owner:
                setattr(owner, attribute, before)
        off = max(found["loss"], found["gradient"], found["weight"])
        yield {"what": what, "model": model, "plan": plan, "error": off}


def widened(model: str) -> list[str]:
    """Returns the network parts that output wider hidden states than the requested bf16."""
    plan = {"mb": BATCH, "precision": "bf16"}
    engine = build({"model": {"name": model, **MODELS[model]}, "plan": plan}, CPU, OPTIONS)
    wide: list[str] = []
    for name, part in engine.stage.parts.items():

        def check_type(_: object, __: object, state: tuple[Tensor, ...], name: str = name) -> None:
            if any(x.dim() and x.dtype != torch.bfloat16 for x in state):
                wide.append(f"{model} {name}")

        part.register_forward_hook(check_type)
    engine.step(no_clock)
    return wide


def check(ranks: int, known: dict[str, dict[int, Reference]]) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {"cases": [], "unsupported": [], "broken": [], "wide": []}
    for model in known:
        for plan in (PLANS if model in ALL_PLANS else SOME)[ranks]:
            case = {"model": model, "plan": plan}
            try:
                for step, loss, engine in run(model, plan):
                    out["cases"].append({**case, "steps": step, **compare(known[model][step], engine, loss)})
            except Unsupported as err:
                out["unsupported"].append({**case, "why": str(err)})
    if ranks == 1:
        out["wide"] = [part for model in known for part in widened(model)]
    if ranks == 2:
        out["broken"] = list(broken(known))
    return out


def sizes() -> list[dict[str, Any]]:
    return [
        {"model": name, "published": published, "count": parameters(whole_network(Config.read({"model": model})))}
        for name, (shape, published) in PUBLISHED.items()
        for model in [{"name": name, **shape}]
    ]


def rank_main(rank: int, ranks: int, folder: str, models: list[str]) -> None:
    """Runs the checks of one process; rank 0 writes the results.

    With ranks == 1 it also writes the reference results that later runs compare with.
    """
    known_file = os.path.join(folder, "known")
    if ranks == 1:
        known = {model: reference(model) for model in models}
        torch.save({m: {step: dataclasses.asdict(k) for step, k in of.items()} for m, of in known.items()}, known_file)
    else:
        store = os.path.join(folder, f"store{ranks}")
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
        loaded = torch.load(known_file)
        known = {m: {step: Reference(**k) for step, k in of.items()} for m, of in loaded.items()}
    found = check(ranks, known)
    if rank == 0:
        with open(os.path.join(folder, f"found{ranks}"), "w") as f:
            json.dump(found, f)
    if ranks > 1:
        dist.barrier()


def launch(ranks: int, folder: str, models: list[str]) -> dict[str, list[Any]]:
    """Runs the checks in forked processes, so that torch is imported only once.

    This process must not have used torch to compute before.
    """
    fork = multiprocessing.get_context("fork")
    processes = [
        fork.Process(target=rank_main, args=(rank, ranks, folder, models), daemon=True) for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    multiprocessing.connection.wait([process.sentinel for process in processes])
    for process in processes:  # after one ends, the others end too or hang because it failed
        process.join(timeout=30)
        process.kill()
    failed = [rank for rank, process in enumerate(processes) if process.exitcode != 0]
    if failed:
        sys.exit(f"check: ranks {failed} of {ranks} failed")
    with open(os.path.join(folder, f"found{ranks}")) as f:
        return json.load(f)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--ranks", default="2,4", help="numbers of processes, besides 1")
    parser.add_argument("--models", default=",".join(MODELS))
    args = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, list[Any]] = {"cases": [], "unsupported": [], "broken": [], "wide": [], "parameters": sizes()}
    with tempfile.TemporaryDirectory() as folder:
        for ranks in [1, *map(int, args.ranks.split(","))]:
            for key, rows in launch(ranks, folder, args.models.split(",")).items():
                found[key] += rows
    with open(args.out, "w") as f:
        json.dump(found, f, indent=1)


if __name__ == "__main__":
    main()
