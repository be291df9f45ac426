"""Number formats: fp32 master weights, and matrix products in the plan's precision."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, ContextManager

import torch
from torch import Tensor

from pacer_worker.unsupported import Unsupported

NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Precision:
    """How one plan computes. name "" is bf16 on CUDA devices that have it, else fp32."""

    def __init__(self, name: str, device: torch.device) -> None:
        self.name = name or default(device)
        self.device = device
        why = lack(self.name, device)
        if why:
            raise Unsupported(why)
        self.dtype = NARROW.get(self.name, torch.float32)  # of hidden states
        self.cast = True  # autocast; False where FSDP keeps narrow copies of the weights
        self.scaler: Any = None

    def use(self) -> None:
        """Sets what torch keeps for the whole process."""
        tf32 = self.name == "tf32"
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = tf32

    def autocast(self) -> ContextManager[object]:
        if self.name not in NARROW or not self.cast:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)

    def guard(self, several: bool) -> None:
        """Guards fp16 gradients against underflow; several: ranks hold different gradients."""
        if self.name != "fp16":
            return
        if several:  # all ranks must skip a step together
            from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

            self.scaler = ShardedGradScaler(process_group=torch.distributed.group.WORLD)
        elif "device" in inspect.signature(getattr(torch.amp, "GradScaler", object)).parameters:
            self.scaler = torch.amp.GradScaler(self.device.type)
        else:
            self.scaler = torch.cuda.amp.GradScaler()
        self.scaler.scale(torch.ones(1, device=self.device))  # makes the scale, which only the last stage would use

    def scale(self, loss: Tensor) -> Tensor:
        return loss if self.scaler is None else self.scaler.scale(loss)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        if self.scaler is None:
            optimizer.step()
        else:
            self.scaler.step(optimizer)
            self.scaler.update()


def default(device: torch.device) -> str:
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"


def lack(name: str, device: torch.device) -> str:
    """Returns why the device cannot compute in this precision, "" if it can."""
    if name == "fp32":
        return ""
    if name == "tf32":
        if device.type == "cuda" and torch.cuda.get_device_capability(device)[0] >= 8:
            return ""
        return "precision=tf32 needs an NVIDIA device of compute capability 8.0 (Ampere) or later"
    if name == "bf16":
        if device.type != "cuda" or torch.cuda.is_bf16_supported():
            return ""
        return "precision=bf16 needs an NVIDIA device of compute capability 8.0 (Ampere) or later, or a CPU"
    if name == "fp16":
        return "" if device.type == "cuda" else "precision=fp16 needs a CUDA device; a CPU has bf16 and fp32"
    return f"precision={name} is not implemented; fp32, tf32, bf16 and fp16 are"
