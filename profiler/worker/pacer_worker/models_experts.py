"""Mixtures of experts: a router sends each token to a few of many MLPs, the experts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

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
    """

    def __init__(self, site: Site, name: str, model: Model, style: Style) -> None:
        super().__init__()
        self.tp, self.gated = site.tp, style.gated
        self.activation = getattr(F, style.activation)
        self.per_token = model.experts_per_token
        experts, hidden, inner = model.experts, model.hidden, model.expert_ffn
        up = [inner] * (2 if style.gated else 1)  # the gate first
        # A rank computes only the part of the router's gradient that comes through its share of
        # every expert.
        self.declare("router", f"{name}.router", (experts, hidden), Normal(hidden), site.device, partial=0)
        split = site.tp.share(1, *up)
        self.declare("up", f"{name}.up", (experts, sum(up), hidden), Normal(hidden), site.device, split)
        split = site.tp.share(2, inner)
        self.declare("down", f"{name}.down", (experts, hidden, inner), Normal(inner), site.device, split)
        self.shared = None
        if model.shared_experts:
            self.shared = MLP(site, f"{name}.shared", hidden, inner * model.shared_experts, style)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.tp.enter(x)
        y = self.tp.leave(self._routed(tokens.flatten(0, 1)).view_as(tokens))
        return y if self.shared is None else y + self.shared(x)

    @uncompiled  # the number of tokens per expert depends on the data
    def _routed(self, tokens: Tensor) -> Tensor:
        """Groups the tokens by expert, so that each expert runs once."""
        scores, chosen = F.linear(tokens, self.router).float().topk(self.per_token)
        order = chosen.flatten().argsort(stable=True)
        rows = order // self.per_token
        load = torch.bincount(chosen.flatten(), minlength=len(self.router)).tolist()
        outputs = [self._expert(i, part) for i, part in enumerate(tokens[rows].split(load))]
        share = scores.softmax(-1).flatten()[order].unsqueeze(-1)
        outputs = torch.cat(outputs) * share.to(outputs[0].dtype)
        return torch.zeros_like(tokens, dtype=outputs.dtype).index_add(0, rows, outputs)

    def _expert(self, i: int, x: Tensor) -> Tensor:
        y = F.linear(x, self.up[i])
        if self.gated:
            gate, y = y.chunk(2, -1)
            return F.linear(self.activation(gate) * y, self.down[i])
        return F.linear(self.activation(y), self.down[i])
