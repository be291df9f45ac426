"""What every network is to the engine: a row of parts, and samples to train on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import torch
from torch import Tensor, nn

Sample = dict  # the tensors of one sample by name


@dataclass(frozen=True)
class Part:
    """One module of the row. It takes the state the part before it returned.

    A state is a tuple of tensors; the first part gets an empty one and the last
    returns the loss alone, the mean over the micro-batch.
    """

    name: str
    make: Callable[[], nn.Module]
    out: tuple[tuple[int, ...], ...]  # shapes of the state it returns, without the batch
    layer: bool = False  # one of those that are spread over stages, recomputed, compiled, gathered
    uses: tuple[str, ...] = ()  # names of Network.tables its micro-batch must hold


@dataclass(frozen=True)
class Network:
    parts: list[Part]
    # Draws one sample of the synthetic data set.
    sample: Callable[[torch.Generator, torch.device], Sample]
    # Modules without inputs whose result joins the micro-batch under their name.
    # Every stage that uses one has a copy; so it is with parameters of one name
    # in parts of different stages. Their gradients are summed.
    tables: dict[str, Callable[[], nn.Module]]
    fused_attention: bool = False  # attention is there and runs in scaled_dot_product_attention


def integers(generator: torch.Generator, device: torch.device, below: int, *shape: int) -> Tensor:
    return torch.randint(below, shape, generator=generator, device=device)
