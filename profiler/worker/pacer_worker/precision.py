"""Number formats: fp32 master weights, and matrix products in the plan's precision."""

from __future__ import annotations

import contextlib
from typing import ContextManager

import torch
from torch import Tensor

from pacer_worker.collectives import Group
from pacer_worker.gradients import local
from pacer_worker.unsupported import Unsupported

NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Precision:
    """The number format of a plan. Without a name it is bf16 on CUDA devices that have it, else fp32."""

    def __init__(self, name: str, device: torch.device) -> None:
        self.name = name or default(device)
        self.device = device
        why = lack(self.name, device)
        if why:
            raise Unsupported(why)
        self.dtype = NARROW.get(self.name, torch.float32)  # of hidden states
        self.cast = True  # autocast; False where FSDP keeps narrow copies of the weights
        self.scaler: LossScaler | None = None

    def use(self) -> None:
        """Sets the options of torch that are global to the process."""
        tf32 = self.name == "tf32"
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True  # of convolution algorithms, during warm-up

    def autocast(self) -> ContextManager[object]:
        if self.name not in NARROW or not self.cast:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)

    def guard(self, world: Group) -> None:
        """Adds loss scaling for fp16, so that small gradients do not become zero; alike on all ranks."""
        if self.name == "fp16":
            self.scaler = LossScaler(self.device, world)

    def scale(self, loss: Tensor) -> Tensor:
        return loss if self.scaler is None else loss * self.scaler.scale

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        if self.scaler is None or self.scaler.unscale(optimizer):
            optimizer.step()


class LossScaler:
    """Dynamic loss scaling (Micikevicius et al., 2018), with the constants of torch's GradScaler.

    GradScaler itself does not synchronize overflows between ranks; FSDP's scaler does,
    but fails with fused optimizers.
    """

    GROWTH, BACKOFF, INTERVAL = 2.0, 0.5, 2000

    def __init__(self, device: torch.device, world: Group) -> None:
        self.device, self.world = device, world
        self.scale = 2.0**16
        self.good = 0  # steps since the scale last changed

    @torch.no_grad()
    def unscale(self, optimizer: torch.optim.Optimizer) -> bool:
        """Divides gradients by the scale and reports whether those of all ranks are finite."""
        grads = [local(p.grad) for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        where = grads[0].device if grads else self.device
        overflow = torch.zeros(1, device=where)
        if grads:
            inverse = torch.full((1,), 1 / self.scale, device=where)
            torch._amp_foreach_non_finite_check_and_unscale_(grads, overflow, inverse)
        overflow = overflow.to(self.device)
        finite = self.world.all_reduce(overflow, largest=True).item() == 0  # ranks skip a step together
        self.good = self.good + 1 if finite else 0
        if not finite:
            self.scale *= self.BACKOFF
        elif self.good == self.INTERVAL:
            self.scale, self.good = self.scale * self.GROWTH, 0
        return finite


def default(device: torch.device) -> str:
    return "bf16" if device.type == "cuda" and ampere(device) else "fp32"


def ampere(device: torch.device | int) -> bool:
    """Reports whether a CUDA device has tf32 and bf16; torch's own test also accepts emulation."""
    return torch.cuda.get_device_capability(device)[0] >= 8


def lack(name: str, device: torch.device) -> str:
    """Returns why the device cannot compute in this precision, "" if it can."""
    if name == "fp32":
        return ""
    if name == "tf32":
        if device.type == "cuda" and ampere(device):
            return ""
        return "precision=tf32 needs an NVIDIA device of compute capability 8.0 (Ampere) or later"
    if name == "bf16":
        if device.type != "cuda" or ampere(device):
            return ""
        return "precision=bf16 needs an NVIDIA device of compute capability 8.0 (Ampere) or later, or a CPU"
    if name == "fp16":
        return "" if device.type == "cuda" else "precision=fp16 needs a CUDA device; a CPU has bf16 and fp32"
    return f"the worker computes in fp32, tf32, bf16 and fp16, not {name}"
