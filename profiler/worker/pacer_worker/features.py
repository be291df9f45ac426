"""The features of the installed torch, and the checks of a plan against them."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from pacer_worker import zero
from pacer_worker.config import Plan
from pacer_worker.models_attention import FUSED
from pacer_worker.precision import ampere


def features() -> dict[str, bool | str]:
    """Returns versions as text and features as true or false; needs no process group."""
    cuda = torch.cuda.is_available()
    kind = _device()
    distributed = dist.is_available()
    return {
        "torch": torch.__version__,
        "cuda": cuda,
        "cuda_version": torch.version.cuda or "",
        "device": torch.cuda.get_device_name(0) if cuda else "cpu",
        "distributed": distributed,
        "nccl": distributed and dist.is_nccl_available(),
        "gloo": distributed and getattr(dist, "is_gloo_available", lambda: True)(),
        "ddp": distributed,
        "zero_redundancy_optimizer": distributed and zero.zero_redundancy_optimizer() is not None,
        "fsdp1": distributed and zero.fsdp1(kind) is not None,
        "fsdp2": distributed and zero.fsdp2(kind) is not None,
        "compile": hasattr(torch, "compile"),
        "sdpa": FUSED,
        "bf16": not cuda or ampere(0),
        "fp16": cuda,
        "tf32": cuda and ampere(0),
    }


def lacks(plan: dict[str, Any] | Plan, compile: bool = False, device: str = "", alone: bool = False) -> list[str]:
    """Returns why the installed torch and this worker cannot run the plan, empty if they can.

    device is "cuda", "cpu" or "" (cuda if there is one). Precisions depend on the
    device model; precision.lack checks them. alone: the plan is run by one rank only.
    """
    device = device or _device()
    plan = plan if isinstance(plan, Plan) else Plan.read(plan)
    version = torch.__version__
    reasons = [
        f"{key}={value}: the worker supports only dp, tp (with sp) and pp"
        for key, value in (("cp", plan.cp), ("ep", plan.ep), ("vp", plan.vp))
        if value > 1 and (key == "vp" or not alone)
    ]
    if plan.ep > 1 and plan.tp > 1 and not (plan.sp and plan.ep % plan.tp == 0):
        reasons.append(f"ep={plan.ep} with tp={plan.tp} needs sp=1 and an ep that tp divides: each rank routes its own tokens")
    if plan.ep > 1 and plan.zero >= 2:
        reasons.append(f"ep={plan.ep} with zero={plan.zero}: the worker shards experts by zero=1 only")
    if plan.schedule not in ("", "1f1b"):
        reasons.append(f"schedule={plan.schedule}: the worker runs pipelines only with 1F1B")
    if plan.shard not in (0, plan.dp):
        reasons.append(f"shard={plan.shard}: the worker shards over all of dp")
    sharded = plan.zero >= 2 and (plan.copies > 1 or plan.offload == "params")
    if sharded and zero.fsdp2(device) is None and zero.fsdp1(device) is None:
        reasons.append(
            f"zero={plan.zero} needs FSDP, which torch {version} lacks or cannot import for {device}; "
            "torch 2.6 or later has it for CUDA"
        )
    elif sharded and plan.tp > 1 and zero.fsdp2(device) is None:
        reasons.append(f"zero={plan.zero} with tp={plan.tp} needs fully_shard, which torch 2.6 or later has")
    if sharded and plan.pp > 1:
        reasons.append(f"zero={plan.zero} with pp={plan.pp}: FSDP would gather the weights for every micro-batch")
    if plan.zero == 1 and plan.copies > 1 and zero.zero_redundancy_optimizer() is None:
        reasons.append(f"zero=1 needs torch.distributed.optim.ZeroRedundancyOptimizer, which torch {version} lacks")
    if plan.offload == "params" and plan.zero != 3:
        reasons.append(f"offload=params needs zero=3, not zero={plan.zero}")
    if plan.sp and plan.tp == 1:
        reasons.append("sp=1 needs tp > 1")
    if compile and not hasattr(torch, "compile"):
        reasons.append(f"compile needs torch.compile, which torch {version} lacks; torch 2.0 or later has it")
    return reasons


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
