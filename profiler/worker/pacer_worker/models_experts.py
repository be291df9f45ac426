"""Mixtures of experts: a router sends each token to a few of many MLPs, the experts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pacer_worker.config import Model
from pacer_worker.models_layers import MLP, Style
from pacer_worker.models_site import Site
from pacer_worker.tensor_parallel import uncompiled
from pacer_worker.weights import Normal, Weighted


class Experts(Weighted):
    """Replaces the MLP of a layer (Shazeer et al., 2017; weights normalised as in Mixtral, 2024).

    No token is dropped and no loss balances the experts: with random weights and
    tokens the load is near even. Tensor parallelism splits every expert; shared
    experts are one MLP that also processes every token.

    With expert parallelism a rank holds whole experts and, if there is tensor parallelism too,
    routes its own tokens of the sequence. It runs alone then (see alone.py): the tokens that it
    would receive are as many as those that it sends, and those have their place.
    """

    def __init__(self, site: Site, name: str, model: Model, style: Style) -> None:
        super().__init__()
        self.tp, self.gated = site.tp, style.gated
        self.activation = getattr(F, style.activation)
        self.per_token, self.groups = model.experts_per_token, site.expert_groups
        experts, hidden, inner = model.experts, model.hidden, model.expert_ffn
        up = [inner] * (2 if style.gated else 1)  # the gate first
        # A rank computes only the part of the router's gradient that comes through its share of
        # every expert.
        self.declare("router", f"{name}.router", (experts, hidden), Normal(hidden), site.device, partial=0)
        held, whole = experts // self.groups, self.groups > 1
        split = None if whole else site.tp.share(1, *up)
        self.declare("up", f"{name}.up", (held, sum(up), hidden), Normal(hidden), site.device, split)
        split = None if whole else site.tp.share(2, inner)
        self.declare("down", f"{name}.down", (held, hidden, inner), Normal(inner), site.device, split)
        self.shared = None
        if model.shared_experts:
            self.shared = MLP(site, f"{name}.shared", hidden, inner * model.shared_experts, style)

    def forward(self, x: Tensor) -> Tensor:
        if self.groups > 1:
            y = self._routed(x.flatten(0, 1)).view_as(x)
        else:
            tokens = self.tp.enter(x)
            y = self.tp.leave(self._routed(tokens.flatten(0, 1)).view_as(tokens))
        return y if self.shared is None else y + self.shared(x)

    @uncompiled  # the number of tokens per expert depends on the data
    def _routed(self, tokens: Tensor) -> Tensor:
        """Groups the tokens by expert, so that each expert runs once."""
        scores, chosen = F.linear(tokens, self.router).float().topk(self.per_token)
        held = chosen.flatten() // self.groups
        order = held.argsort(stable=True)
        rows = order // self.per_token
        load = torch.bincount(held, minlength=len(self.up)).tolist()
        outputs = [self._expert(i, part) for i, part in enumerate(self._sent(tokens[rows]).split(load))]
        share = scores.softmax(-1).flatten()[order].unsqueeze(-1)
        outputs = self._sent(torch.cat(outputs)) * share.to(outputs[0].dtype)
        return torch.zeros_like(tokens, dtype=outputs.dtype).index_add(0, rows, outputs)

    def _sent(self, x: Tensor) -> Tensor:
        """Returns x as the all-to-all of expert parallelism leaves it: in a buffer of its own."""
        return x if self.groups == 1 else x.clone()

    def _expert(self, i: int, x: Tensor) -> Tensor:
        y = F.linear(x, self.up[i])
        if self.gated:
            gate, y = y.chunk(2, -1)
            return F.linear(self.activation(gate) * y, self.down[i])
        return F.linear(self.activation(y), self.down[i])


def split_experts(stage: nn.Module) -> list[nn.Parameter]:
    """Returns the parameters of a stage that expert parallelism splits."""
    return [p for part in stage.modules() if isinstance(part, Experts) for p in (part.up, part.down)]


def without(parameters: list[nn.Parameter], some: list[nn.Parameter]) -> list[nn.Parameter]:
    left_out = {id(p) for p in some}
    return [p for p in parameters if id(p) not in left_out]
