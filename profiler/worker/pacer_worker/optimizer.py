"""AdamW, on the device or on the host."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Callable

import torch

from pacer_worker.gradients import local


@dataclass(frozen=True)
class Settings:
    """The parameters of Adam; they do not affect the step time."""

    learning_rate: float = 1e-4
    epsilon: float = 1e-8

    def kwargs(self) -> dict[str, float]:
        return {"lr": self.learning_rate, "eps": self.epsilon, "weight_decay": 0.01}


def adamw(parameters: Any, **kwargs: Any) -> torch.optim.Optimizer:
    """Returns AdamW, fused if torch can on the device of the parameters."""
    if "fused" in inspect.signature(torch.optim.AdamW).parameters:
        try:
            return torch.optim.AdamW(parameters, fused=True, **kwargs)
        except (RuntimeError, NotImplementedError):  # no fused version for this device
            pass
    return torch.optim.AdamW(parameters, **kwargs)


class Several:
    """Optimizers of disjoint parameters, as one."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        self.parts = parts
        self.param_groups = [group for part in parts for group in part.param_groups]

    def zero_grad(self, set_to_none: bool = True) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)

    def step(self) -> None:
        for part in self.parts:
            part.step()


class HostAdamW(torch.optim.Optimizer):
    """AdamW with its state and its step on the host (Ren et al., ZeRO-Offload, 2021).

    Gradients are copied to the host, the step is done there on a copy of the
    weights, and the new weights are copied back.
    """

    def __init__(self, parameters: Any, **kwargs: Any) -> None:
        super().__init__(parameters, dict(kwargs))
        self.weights = [p for group in self.param_groups for p in group["params"] if local(p).numel()]
        self.host = [self._copy(local(p)) for p in self.weights]
        self.inner = adamw(self.host, **kwargs) if self.host else None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        if self.inner is None:
            return
        for weight, host in zip(self.weights, self.host):
            if weight.grad is not None:
                host.grad.copy_(local(weight.grad), non_blocking=True)
        if local(self.weights[0]).is_cuda:
            torch.cuda.synchronize()  # the host reads the copies next
        self.inner.step()
        for weight, host in zip(self.weights, self.host):
            local(weight).copy_(host, non_blocking=True)

    @staticmethod
    def _copy(weight: torch.Tensor) -> torch.nn.Parameter:
        def pinned() -> torch.Tensor:
            return torch.empty_like(weight, device="cpu", pin_memory=weight.is_cuda)  # keeps its memory layout

        weight = weight.detach()
        host = torch.nn.Parameter(pinned().copy_(weight))
        host.grad = pinned().zero_()
        return host
