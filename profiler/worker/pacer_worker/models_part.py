"""A network as the engine sees it: a sequence of parts, and samples to train on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import torch
from torch import Tensor, nn

Sample = dict  # the tensors of one sample by name


@dataclass(frozen=True)
class Part:
    """One module of the sequence. It takes the state that the part before it returned.

    A state is a tuple of tensors; the first part gets an empty one and the last
    returns the loss alone, the mean over the micro-batch.
    """

    name: str
    make: Callable[[], nn.Module]
    out: tuple[tuple[int, ...], ...]  # shapes of the state it returns, without the batch
    layer: bool = False  # a unit of pipeline stages, recomputation, compilation and FSDP
    uses: tuple[str, ...] = ()  # names of the Network.tables that it reads from its micro-batch


@dataclass(frozen=True)
class Network:
    parts: list[Part]
    # Draws one sample of the synthetic data set.
    sample: Callable[[torch.Generator, torch.device], Sample]
    # Modules without inputs, by name; the output is added to the micro-batch under that
    # name. Every stage that uses one has a copy, and likewise of parameters with the same
    # name in parts of different stages. The gradients of the copies are summed.
    tables: dict[str, Callable[[], nn.Module]]
    fused_attention: bool = False  # its attention can use scaled_dot_product_attention


def integers(generator: torch.Generator, device: torch.device, below: int, *shape: int) -> Tensor:
    return torch.randint(below, shape, generator=generator, device=device)
