"""Data parallelism: one replica, DistributedDataParallel, or sums after the pipeline."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from pacer_worker.collectives import Group
from pacer_worker.gradients import average


class Replicas:
    """One replica, without communication; the base of the other kinds."""

    note = ""  # for Engine.notes
    can_skip_sync = False
    fresh = True  # gradients are freed between steps: the first backward pass then writes instead of adding

    def __init__(self, stage: nn.Module, group: Group) -> None:
        self.stage, self.group = stage, group
        self.run: Callable[..., Any] = stage

    def micro_batch(self, last: bool, sync: bool) -> ContextManager[object]:
        """Wraps the forward pass and the backward pass of a micro-batch."""
        return contextlib.nullcontext()

    def finish(self, sync: bool) -> None:
        """Runs after the last backward pass."""


class Overlapped(Replicas):
    """DistributedDataParallel: gradients are averaged in buckets during the last backward pass."""

    note = "DistributedDataParallel"
    can_skip_sync = True
    fresh = False  # gradients are in the buckets; freed ones would be allocated again outside them by no_sync

    def __init__(self, stage: nn.Module, group: Group, alone: bool) -> None:
        """alone: only this rank of the group runs."""
        super().__init__(stage, group)
        self.run = self.wrapped = DistributedDataParallel(
            stage, process_group=group.handle, gradient_as_bucket_view=True, broadcast_buffers=False
        )

        if alone:
            self.wrapped.register_comm_hook(None, _kept)

    def micro_batch(self, last: bool, sync: bool) -> ContextManager[object]:
        return contextlib.nullcontext() if last and sync else self.wrapped.no_sync()


def _kept(_, bucket):  # type: ignore[no-untyped-def] # torch checks annotations, as values
    """Sends nothing: torch's fake process group has no result that DistributedDataParallel takes."""
    future: Any = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


class Flushed(Replicas):
    """Averages after the pipeline has drained.

    DistributedDataParallel expects each backward pass right after its forward
    pass, which a pipeline does not do.
    """

    note = "all-reduce after the pipeline"
    can_skip_sync = True

    def finish(self, sync: bool) -> None:
        if sync:
            average(self.stage.parameters(), self.group)
