"""Parameters with a description of their part of a full tensor.

Every full tensor is drawn from a random generator seeded by its name and then cut, one
tensor at a time. So a network starts from the same weights under every plan.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Iterator, Sequence

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Split:
    """The ranges of a full tensor's axis that one rank holds, in order."""

    axis: int
    ranges: tuple[tuple[int, int], ...]  # start, stop
    size: int  # length held; what exceeds the ranges is zero padding
    blocks: tuple[int, ...] = (0,)  # where the block of each range begins in the full tensor

    def cut(self, full: Tensor) -> Tensor:
        pieces = [full.narrow(self.axis, start, stop - start) for start, stop in self.ranges]
        padding = self.size - sum(stop - start for start, stop in self.ranges)
        if padding:
            shape = list(full.shape)
            shape[self.axis] = padding
            pieces.append(full.new_zeros(shape))
        return torch.cat(pieces, self.axis)


@dataclass(frozen=True)
class Normal:
    """Normal random numbers of variance 1/fan_in (LeCun et al., Efficient BackProp, 1998)."""

    fan_in: int


@dataclass(frozen=True)
class Constant:
    value: float


@dataclass(frozen=True)
class Weight:
    """The full tensor that a parameter is a part of."""

    name: str  # of the full tensor, the same in every plan
    shape: tuple[int, ...]  # of the full tensor
    fill: Normal | Constant
    split: Split | None = None  # None: whole
    # Gradients of ranges[partial:] are summed over the tensor-parallel group,
    # because each rank sees only some of the tokens or heads that use them.
    partial: int | None = None

    def local_shape(self) -> tuple[int, ...]:
        if self.split is None:
            return self.shape
        return tuple(self.split.size if i == self.split.axis else n for i, n in enumerate(self.shape))

    def local(self, full: Tensor) -> Tensor:
        return full if self.split is None else self.split.cut(full)

    def draw(self, seed: int, device: torch.device) -> Tensor:
        """Returns the full tensor, the same for the same seed on the same kind of device."""
        if isinstance(self.fill, Constant):
            return torch.full(self.shape, self.fill.value, device=device)
        generator = torch.Generator(device).manual_seed(derive(seed, self.name))
        return torch.randn(self.shape, generator=generator, device=device).div_(math.sqrt(self.fill.fan_in))


class Weighted(nn.Module):
    """A module that declares its parameters with their full shape and split."""

    def __init__(self) -> None:
        super().__init__()
        self.declared: dict[str, Weight] = {}

    def declare(
        self,
        attribute: str,
        name: str,
        shape: Sequence[int],
        fill: Normal | Constant,
        device: torch.device,
        split: Split | None = None,
        partial: int | None = None,
    ) -> None:
        weight = Weight(name, tuple(shape), fill, split, partial)
        self.declared[attribute] = weight
        self.register_parameter(attribute, nn.Parameter(torch.empty(weight.local_shape(), device=device)))


def declared(root: nn.Module) -> Iterator[tuple[Weight, nn.Module, str]]:
    """Yields each parameter once, as (weight, module, attribute)."""
    seen: set[str] = set()
    for module in root.modules():
        if isinstance(module, Weighted):
            for attribute, weight in module.declared.items():
                if weight.name not in seen:
                    seen.add(weight.name)
                    yield weight, module, attribute


def tie(root: nn.Module) -> None:
    """Makes parameters with the same name one parameter."""
    first: dict[str, nn.Parameter] = {}
    for module in root.modules():
        if isinstance(module, Weighted):
            for attribute, weight in module.declared.items():
                parameter = getattr(module, attribute)
                module.register_parameter(attribute, first.setdefault(weight.name, parameter))


@torch.no_grad()
def initialise(root: nn.Module, seed: int, device: torch.device) -> None:
    for weight, module, attribute in declared(root):
        parameter = getattr(module, attribute)
        drawn = weight.local(weight.draw(seed, device))
        if hasattr(parameter, "to_local"):  # FSDP splits the first dimension; the last ranks may get nothing
            chunks = drawn.chunk(parameter.device_mesh.size())
            rank = parameter.device_mesh.get_local_rank()
            if rank < len(chunks):
                parameter.to_local().copy_(chunks[rank])
        else:
            parameter.copy_(drawn)


def count(root: nn.Module) -> int:
    """Returns the parameters of the full tensors."""
    return sum(math.prod(weight.shape) for weight, _, _ in declared(root))


def derive(seed: int, *names: object) -> int:
    """Returns a seed for one stream of random numbers."""
    text = ":".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
