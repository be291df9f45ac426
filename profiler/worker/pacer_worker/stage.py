"""A pipeline stage: consecutive parts of the network, run one after the other."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Callable, ContextManager

import torch
from torch import Tensor, nn

from pacer_worker.models_part import Network, Part
from pacer_worker.recompute import again
from pacer_worker.models_site import Site
from pacer_worker.unsupported import Unsupported
from pacer_worker.weights import tie

Autocast = Callable[[], ContextManager[object]]


def split(network: Network, stages: int) -> list[list[Part]]:
    """Distributes the layers evenly over the stages, like spec.Plan.StageLayers.

    If they do not divide, the stages just before the last get one more.
    Parts that are no layers, such as embeddings, belong to the stage of the layer after
    them; those after the last layer belong to the last stage.
    """
    layers = sum(part.layer for part in network.parts)
    if stages > layers:
        raise Unsupported(f"pp={stages} is more than the {layers} layers of the network")
    share, over = divmod(layers, stages)
    counts = [share + (stages - 1 - over <= stage < stages - 1) for stage in range(stages)]
    ends = list(itertools.accumulate(counts))
    rows: list[list[Part]] = [[]]
    done = 0
    for part in network.parts:
        if done == ends[len(rows) - 1] and len(rows) < stages:
            rows.append([])
        rows[-1].append(part)
        done += part.layer
    return rows


class Stage(nn.Module):
    """The parts of one stage. The last stage returns the loss as its state."""

    def __init__(self, network: Network, parts: list[Part], site: Site, autocast: Autocast) -> None:
        super().__init__()
        self.autocast, self.dtype, self.recompute = autocast, site.dtype, site.recompute.layers
        self.last = parts[-1] is network.parts[-1]
        self.layers = {part.name for part in parts if part.layer}
        self.parts = nn.ModuleDict({part.name: part.make() for part in parts})
        used = [name for name in network.tables if any(name in part.uses for part in parts)]
        self.tables = nn.ModuleDict({name: network.tables[name]() for name in used})
        tie(self)

    def forward(self, state: tuple[Tensor, ...], batch: dict[str, Tensor]) -> tuple[Tensor, ...]:
        with self.autocast():
            batch = {**batch, **{name: table() for name, table in self.tables.items()}}
            for name, part in self.parts.items():
                if self.recompute and name in self.layers:
                    state = again(part, state, batch)
                else:
                    state = part(state, batch)
            return state if self.last else tuple(x.to(self.dtype) for x in state)

    def layer_modules(self) -> list[nn.Module]:
        return [part for name, part in self.parts.items() if name in self.layers]

    def separate_parts(self) -> list[nn.Module]:
        """Returns the parts that share no parameter with another part, unlike tied embeddings."""
        holders = Counter(id(p) for part in self.parts.values() for p in part.parameters())
        return [part for part in self.parts.values() if all(holders[id(p)] == 1 for p in part.parameters())]

    def compile(self) -> None:  # type: ignore[override]
        """Compiles each layer separately: recomputation and FSDP wrap layers, and equal layers share graphs."""
        for layer in self.layer_modules():
            layer.forward = torch.compile(layer.forward)  # type: ignore[method-assign]
