"""Layers with weights that tensor parallelism splits: linear layers and token embeddings."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from pacer_worker.models_site import Site
from pacer_worker.weights import Constant, Normal, Split, Weighted


class Linear(Weighted):
    """A linear layer: whole, split by columns (axis 0) or by rows (axis 1).

    After a layer split by rows the caller must call TensorParallel.leave and then
    add_bias, since forward leaves out the bias of such a layer.
    """

    def __init__(
        self,
        site: Site,
        name: str,
        inputs: int,
        outputs: int,
        bias: bool,
        split: Split | None = None,
        partial: int | None = None,
    ) -> None:
        super().__init__()
        self.tp = site.tp
        device = site.device
        self.declare("weight", f"{name}.weight", (outputs, inputs), Normal(inputs), device, split, partial)
        self.by_rows = split is not None and split.axis == 1
        if bias:
            if self.by_rows:
                split, partial = None, site.tp.partial
            self.declare("bias", f"{name}.bias", (outputs,), Constant(0.0), device, split, partial)
        else:
            self.register_parameter("bias", None)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, None if self.by_rows else self.bias)

    def columns(self, x: Tensor) -> Tensor:
        """Like forward, for a hidden state and a layer split by columns."""
        return self.tp.columns(x, self.weight, self.bias)

    def add_bias(self, x: Tensor) -> Tensor:
        """Adds the bias in the number format of x; in its own, fp32, it would widen the hidden state."""
        return x if self.bias is None else x + self.bias.to(x.dtype)


class TokenEmbedding(Weighted):
    """A table of token vectors, its rows split over the ranks."""

    def __init__(self, site: Site, name: str, vocab: int, hidden: int) -> None:
        super().__init__()
        self.tp = site.tp
        split = site.tp.vocabulary(vocab) if site.tp.size > 1 else None
        self.declare("table", name, (vocab, hidden), Normal(hidden), site.device, split)
        self.range = split.ranges[0] if split else (0, vocab)

    def forward(self, tokens: Tensor) -> Tensor:
        if self.tp.size == 1:
            return F.embedding(tokens, self.table)
        start, stop = self.range
        elsewhere = (tokens < start) | (tokens >= stop)
        rows = F.embedding((tokens - start).masked_fill(elsewhere, 0), self.table)
        return self.tp.leave(rows.masked_fill(elsewhere.unsqueeze(-1), 0))
