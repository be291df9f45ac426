"""One rank of a plan on one device, without the others: what it computes and stores is real, nothing is sent.

Sums return this rank's part, gathers repeat its share and receives return fixed random numbers, all of the right
shape. So the losses and gradients mean nothing, and the times and the memory are those of the rank's own work.
"""

from __future__ import annotations

from typing import Any, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from pacer_worker.collectives import Group
from pacer_worker.config import Config
from pacer_worker.phases import Phases
from pacer_worker.pipeline import Links, State
from pacer_worker.unsupported import Unsupported

BACKEND = "alone"
GRADIENT = 1e-3  # scale of a received gradient


def rank_of(config: Config) -> int:
    """Returns the rank that stands for those of the configuration's stage: its first one."""
    plan = config.plan
    if not 1 <= config.alone_stage <= plan.pp:
        raise Unsupported(f"alone_stage={config.alone_stage} is not one of the pp={plan.pp} stages")
    return (config.alone_stage - 1) * plan.copies * plan.tp


def join(config: Config) -> str:
    """Makes this process a rank of a world with the plan's devices. Returns the name of the process groups."""
    if not dist.is_available():
        raise Unsupported(f"torch {torch.__version__} was built without torch.distributed")
    where: dict[str, Any] = {"rank": rank_of(config), "world_size": config.plan.devices}
    fake = _fake_store()
    if fake is not None:
        dist.init_process_group("fake", store=fake, **where)
        return "torch's fake process group"
    if not hasattr(dist.Backend, BACKEND.upper()):
        dist.Backend.register_backend(BACKEND, lambda store, rank, size, timeout: _Silent(rank, size))
    dist.init_process_group(BACKEND, store=_Present(config.plan.devices), **where)
    return "the worker's own process group"


def _fake_store() -> Any:
    """Returns the store of torch's fake process group, None if this torch has none (before 2.1)."""
    try:
        from torch.testing._internal.distributed.fake_pg import FakeStore
    except Exception:  # noqa: BLE001 - a module of torch's tests, which may be left out
        return None
    return FakeStore()


class AloneGroup(Group):
    """A process group with one running rank, this one."""

    def __init__(self, ranks: Sequence[int], rank: int, handle: object, phases: Phases) -> None:
        super().__init__(ranks, rank, handle, phases)
        self.native = False

    def all_reduce(self, x: Tensor, largest: bool = False) -> Tensor:
        return x

    def all_gather(self, x: Tensor, dim: int) -> Tensor:
        if self.size == 1:
            return x
        front = x.transpose(0, dim).contiguous()
        with self.phases("communication"):
            joined = torch.cat([front] * self.size)
        return joined.transpose(0, dim)

    def reduce_scatter(self, x: Tensor, dim: int) -> Tensor:
        if self.size == 1:
            return x
        front = x.transpose(0, dim).contiguous()
        with self.phases("communication"):
            share = self.share(front, 0).clone()
        return share.transpose(0, dim)


class AloneLinks(Links):
    """The connections of a stage without running neighbours: it receives the same numbers each time."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._received: dict[tuple[bool, tuple[int, ...]], Tensor] = {}

    def exchange(
        self,
        forward: State | None = None,
        backward: State | None = None,
        want_forward: bool = False,
        want_backward: bool = False,
    ) -> State:
        received = self._buffers(self.inputs, want_forward and not self.first)
        received += self._buffers(self.outputs, want_backward and not self.last)
        with self.phases("wait"):
            for x in received:
                x.copy_(self._numbers(want_forward, x))
        if want_forward:
            for x in received:
                x.requires_grad_()
        return tuple(received)

    def _numbers(self, forward: bool, like: Tensor) -> Tensor:
        """Returns activations or gradients of a shape."""
        of = (forward, tuple(like.shape))
        if of not in self._received:
            generator = torch.Generator(self.device).manual_seed(0)
            drawn = torch.randn(like.shape, generator=generator, device=self.device)
            self._received[of] = drawn.mul_(1.0 if forward else GRADIENT).to(self.dtype)
        return self._received[of]


class _Present(dist.Store):
    """A store that says that every rank has come."""

    def __init__(self, world: int) -> None:
        super().__init__()
        self._world = world

    def add(self, key: str, count: int) -> int:
        return self._world


def _done(tensors: Any) -> Any:
    future: Any = torch.futures.Future()
    future.set_result(tensors)
    return torch._C._distributed_c10d._create_work_from_future(future)


class _Silent(dist.ProcessGroup):
    """A process group that sends nothing, for DistributedDataParallel and ZeroRedundancyOptimizer."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)

    def allreduce(self, tensors: Any, _: Any = None) -> Any:
        return _done(tensors)

    def broadcast(self, tensors: Any, _: Any = None) -> Any:
        return _done(tensors)

    def allgather(self, outputs: Any, inputs: Any, _: Any = None) -> Any:
        for parts, mine in zip(outputs, inputs):
            for part in parts:
                part.copy_(mine)
        return _done(outputs)

    def barrier(self, _: Any = None) -> Any:
        return _done([])

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        return BACKEND
