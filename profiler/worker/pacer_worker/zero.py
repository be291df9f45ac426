"""ZeRO (Rajbhandari et al., 2020): stage 1 by ZeroRedundancyOptimizer, 2 and 3 by FSDP."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, ContextManager

import torch
import torch.distributed as dist

from pacer_worker.collectives import Group
from pacer_worker.config import Plan
from pacer_worker.mesh import GROUP_TIMEOUT
from pacer_worker.precision import Precision
from pacer_worker.replicas import Replicas
from pacer_worker.stage import Stage


def _module_with(name: str, *paths: str) -> ModuleType | None:
    """Returns the first importable module with the attribute."""
    for path in paths:
        try:
            module = importlib.import_module(path)
        except Exception:  # noqa: BLE001 - torch 1.13's FSDP raises ValueError on Python 3.11
            continue
        if hasattr(module, name):
            return module
    return None


def fsdp2(device: str) -> ModuleType | None:
    """Returns the module with FSDP2's fully_shard, if that runs on this type of device."""
    streams = getattr(getattr(torch, "cpu", None), "Stream", None)
    if device == "cpu" and not hasattr(streams, "record_event"):
        return None  # FSDP2 needs streams, which torch.cpu has only in later versions
    module = _module_with("fully_shard", "torch.distributed.fsdp", "torch.distributed._composable.fsdp")
    return module if module is not None and hasattr(module, "CPUOffloadPolicy") else None


def fsdp1(device: str) -> ModuleType | None:
    """Returns the module with FullyShardedDataParallel, for CUDA, if it can keep the original parameters."""
    if device == "cpu":
        return None
    module = _module_with("FullyShardedDataParallel", "torch.distributed.fsdp")
    wrap = _module_with("ModuleWrapPolicy", "torch.distributed.fsdp.wrap")
    return module if module is not None and wrap is not None else None


def zero_redundancy_optimizer() -> type | None:
    module = _module_with("ZeroRedundancyOptimizer", "torch.distributed.optim")
    return module.ZeroRedundancyOptimizer if module else None


def sharded_optimizer(
    parameters: list[torch.nn.Parameter], kind: Any, group: Group, **kwargs: Any
) -> torch.optim.Optimizer:
    """Returns a ZeRO-1 optimizer: every replica steps its share of the parameters and broadcasts them.

    Parameters become views of one buffer per replica, which is broadcast as a whole,
    unless that would change their memory layout (channels last).
    """
    base: Any = zero_redundancy_optimizer()
    views = all(p.is_contiguous() for p in parameters)

    class ShardedOptimizer(base):  # type: ignore[misc]
        def _sync_params(self) -> None:
            with group.phases("communication"):
                super()._sync_params()

    return ShardedOptimizer(
        parameters,
        optimizer_class=kind,
        process_group=group.handle,
        parameters_as_bucket_view=views,
        **kwargs,
    )


def own_group(device: torch.device) -> object:
    """Returns a group of this process alone, for FSDP with one replica; collective over the world."""
    if not dist.is_initialized():
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    if dist.get_world_size() == 1:
        return dist.group.WORLD
    return [dist.new_group([rank], timeout=GROUP_TIMEOUT) for rank in range(dist.get_world_size())][dist.get_rank()]


class FullyShard(Replicas):
    """FSDP2. The stage is made on the meta device; its parameters get memory after sharding."""

    note = "fsdp2"

    def __init__(self, stage: Stage, group: Group, handle: object, plan: Plan, precision: Precision) -> None:
        super().__init__(stage, group)
        device = precision.device
        api: Any = fsdp2(device.type)
        from torch.distributed.device_mesh import DeviceMesh

        options: dict[str, Any] = {"mesh": DeviceMesh.from_group(handle, device.type)}
        if precision.dtype != torch.float32:
            options["mp_policy"] = api.MixedPrecisionPolicy(param_dtype=precision.dtype, reduce_dtype=torch.float32)
        if plan.offload == "params":
            options["offload_policy"] = api.CPUOffloadPolicy(pin_memory=device.type == "cuda")
        end = list(stage.parts.values())[-1]  # its backward pass follows immediately
        for part in stage.separate_parts():
            api.fully_shard(part, reshard_after_forward=plan.zero == 3 and part is not end, **options)
        api.fully_shard(stage, reshard_after_forward=False, **options)
        self.gathered = plan.zero == 2  # weights stay gathered from the first micro-batch to the last
        stage.to_empty(device="cpu" if plan.offload == "params" else device)

    def micro_batch(self, last: bool, sync: bool) -> ContextManager[object]:
        stage: Any = self.stage
        if self.gathered:
            stage.set_reshard_after_backward(last)
        return super().micro_batch(last, sync)


class FullySharded(Replicas):
    """FSDP1, for torch before 2.4."""

    note = "fsdp1"

    def __init__(self, stage: Stage, group: Group, handle: object, plan: Plan, precision: Precision) -> None:
        super().__init__(stage, group)
        api: Any = fsdp1(precision.device.type)
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        options: dict[str, Any] = {}
        if precision.dtype != torch.float32:
            options["mixed_precision"] = api.MixedPrecision(param_dtype=precision.dtype, reduce_dtype=torch.float32)
        strategy = api.ShardingStrategy.FULL_SHARD if plan.zero == 3 else api.ShardingStrategy.SHARD_GRAD_OP
        self.run = api.FullyShardedDataParallel(
            stage,
            process_group=handle,
            sharding_strategy=strategy,
            cpu_offload=api.CPUOffload(plan.offload == "params"),
            auto_wrap_policy=ModuleWrapPolicy({type(layer) for layer in stage.layer_modules()}),
            device_id=precision.device if precision.device.type == "cuda" else None,
            use_orig_params=True,
            **options,
        )
