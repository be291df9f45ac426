"""Sums of gradients that torch does not provide."""

from __future__ import annotations

from typing import Iterable

import torch
from torch import Tensor, nn

from pacer_worker.collectives import Group
from pacer_worker.mesh import Mesh
from pacer_worker.models_part import Network, Part
from pacer_worker.weights import Weight, declared

BUCKET = 25 << 20  # bytes reduced at once, as DistributedDataParallel's default


def local(tensor: Tensor) -> Tensor:
    """Returns this rank's shard if FSDP has split the tensor."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def average(parameters: Iterable[nn.Parameter], group: Group) -> None:
    """Replaces gradients by their mean over the replicas, a bucket at a time."""
    if group.size > 1:
        _reduce([parameter.grad for parameter in parameters if parameter.grad is not None], group, group.size)


def _reduce(tensors: list[Tensor], group: Group, divisor: int = 1) -> None:
    bucket: list[Tensor] = []
    size = 0
    for i, tensor in enumerate(tensors):
        bucket.append(tensor)
        size += tensor.numel() * tensor.element_size()
        if i + 1 == len(tensors) or size >= BUCKET:
            flat = group.all_reduce(torch.cat([x.flatten() for x in bucket]))
            if divisor > 1:
                flat /= divisor
            for x, total in zip(bucket, flat.split([x.numel() for x in bucket])):
                x.copy_(total.view_as(x))
            bucket, size = [], 0


class PartialSums:
    """Adds up gradients that each tensor-parallel rank computes only in part.

    These are the gradients of tensors that every rank holds whole but applies only to its
    own tokens (sequence parallelism), and of key/value heads held by several ranks.
    """

    def __init__(self, stage: nn.Module, group: Group) -> None:
        self.group = group
        self.weights = [entry for entry in declared(stage) if entry[0].partial is not None] if group.size > 1 else []

    def __call__(self) -> None:
        whole = []
        for weight, module, attribute in self.weights:
            grad = local(getattr(module, attribute).grad)
            if weight.split is None:
                whole.append(grad)
            else:
                self._sum_heads(weight, grad)
        if whole:
            _reduce(whole, self.group)

    def _sum_heads(self, weight: Weight, grad: Tensor) -> None:
        """Sums the gradients of shared heads in one buffer with all heads, zero for those not held here."""
        assert weight.split is not None and weight.partial is not None and weight.split.axis == 0
        base = weight.split.blocks[weight.partial]
        ranges = weight.split.ranges[weight.partial :]
        held = sum(stop - start for start, stop in ranges)
        mine = grad[len(grad) - held :].split([stop - start for start, stop in ranges])
        total = grad.new_zeros((weight.shape[0] - base, *weight.shape[1:]))
        for (start, stop), piece in zip(ranges, mine):
            total[start - base : stop - base] = piece
        self.group.all_reduce(total)
        for (start, stop), piece in zip(ranges, mine):
            piece.copy_(total[start - base : stop - base])


class SharedSums:
    """Adds up the gradients of parameters that several pipeline stages hold, such as tied embeddings."""

    def __init__(self, network: Network, rows: list[list[Part]], stage: nn.Module, mesh: Mesh) -> None:
        """Collective: makes the process groups of the stages that share a parameter."""
        self.sums: list[tuple[nn.Module, str, Group]] = []
        mine = {weight.name: (module, attribute) for weight, module, attribute in declared(stage)}
        for name, stages in sorted(_holders(network, rows).items()):
            if len(stages) > 1:
                group = mesh.stages(stages)
                if group is not None and name in mine:
                    self.sums.append((*mine[name], group))

    def __call__(self) -> None:
        for module, attribute, group in self.sums:
            group.all_reduce(getattr(module, attribute).grad)


def _holders(network: Network, rows: list[list[Part]]) -> dict[str, list[int]]:
    """Returns the stages that hold each parameter, by name."""
    holders: dict[str, list[int]] = {}
    for stage, parts in enumerate(rows):
        tables = {name for part in parts for name in part.uses}
        modules = [part.make() for part in parts] + [network.tables[name]() for name in tables]
        for name in {weight.name for module in modules for weight, _, _ in declared(module)}:
            holders.setdefault(name, []).append(stage)
    return holders
