"""Collectives over one process group, by NCCL or gloo."""

from __future__ import annotations

from typing import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from pacer_worker.phases import Phases


class Group:
    """A process group seen from one of its ranks.

    With one rank every method returns its argument and nothing is sent. The time
    of the collective alone, without copies before and after, is counted as
    "communication".
    """

    def __init__(self, ranks: Sequence[int], rank: int, handle: object, phases: Phases) -> None:
        self.ranks = list(ranks)  # ranks of the world, in order
        self.rank = rank  # position of this process among them
        self.size = len(self.ranks)
        self.handle = handle  # the group of torch.distributed; None with one rank
        self.phases = phases
        self.native = self.size > 1 and dist.get_backend(handle) == "nccl"

    def all_reduce(self, x: Tensor, largest: bool = False) -> Tensor:
        """Sums x over the ranks in place (or takes the largest) and returns it."""
        if self.size == 1:
            return x
        op = dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM
        wide = x if self.native or x.dtype != torch.bfloat16 else x.float()  # older gloo has no bfloat16
        with self.phases("communication"):
            dist.all_reduce(wide, op, group=self.handle)
        return x if wide is x else x.copy_(wide)

    def all_gather(self, x: Tensor, dim: int) -> Tensor:
        """Returns the x of all ranks joined along dim."""
        if self.size == 1:
            return x
        front = x.transpose(0, dim).contiguous()
        joined = front.new_empty((self.size * front.shape[0], *front.shape[1:]))
        with self.phases("communication"):
            if self.native:
                dist.all_gather_into_tensor(joined, front, group=self.handle)
            else:  # as bytes: older gloo has no bfloat16
                parts = [part.view(torch.uint8) for part in joined.chunk(self.size)]
                dist.all_gather(parts, front.view(torch.uint8), group=self.handle)
        return joined.transpose(0, dim)

    def reduce_scatter(self, x: Tensor, dim: int) -> Tensor:
        """Returns this rank's share along dim of the sum of x over the ranks."""
        if self.size == 1:
            return x
        front = x.transpose(0, dim).contiguous()
        if self.native:
            share = front.new_empty((front.shape[0] // self.size, *front.shape[1:]))
            with self.phases("communication"):
                dist.reduce_scatter_tensor(share, front, group=self.handle)
        else:  # gloo of torch 1.13 has no reduce_scatter
            if front.data_ptr() == x.data_ptr():
                front = front.clone()
            share = self.share(self.all_reduce(front), 0)
        return share.transpose(0, dim)

    def share(self, x: Tensor, dim: int) -> Tensor:
        """Returns this rank's equal share of x along dim; the group's size must divide its length."""
        length = x.shape[dim] // self.size
        return x.narrow(dim, self.rank * length, length)
