"""Causal language models, dense or with experts: in Llama style if the MLP is gated, else in GPT style."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pacer_worker.config import Config, require_shape
from pacer_worker.models_attention import Rotary
from pacer_worker.models_experts import Experts
from pacer_worker.models_layers import Batch, Layer, Norm, State, Style
from pacer_worker.models_part import Network, Part, Sample, integers
from pacer_worker.models_site import Site
from pacer_worker.parallel_layers import TokenEmbedding
from pacer_worker.tensor_parallel import cross_entropy
from pacer_worker.weights import Constant, Normal, Weighted

GPT = Style(causal=True)
LLAMA = Style(causal=True, rms_norm=True, bias=False, activation="silu", gated=True, rotary=True)


def decoder(config: Config, site: Site) -> Network:
    model, seq = config.model, config.seq_len // site.contexts.size
    require_shape(model, "layers", "hidden", "heads", "vocab")
    dense = model.dense_layers if model.experts else model.layers
    if dense:
        require_shape(model, "ffn")
    if model.experts:
        require_shape(model, "experts_per_token", "expert_ffn")
    style = LLAMA if model.gated_mlp else GPT
    state = ((seq // site.tp.size if site.tp.sequence else seq, model.hidden),)
    learned = 0 if style.rotary else config.seq_len
    table = "embed.table" if model.tied_embeddings else "head.table"

    def layer(i: int) -> nn.Module:
        name = f"layer_{i}"
        routed = (i + 1) % model.moe_every == 0 if model.moe_every > 1 else i >= dense
        mlp = Experts(site, f"{name}.experts", model, style) if model.experts and routed else None
        return Layer(site, name, model, style, mlp=mlp)

    parts = [Part("embed", lambda: Embed(site, model.vocab, model.hidden, learned), state)]
    tables = {"rotary": lambda: Rotary(site, seq, model.head)} if style.rotary else {}
    parts += [
        Part(f"layer_{i}", lambda i=i: layer(i), state, layer=True, uses=tuple(tables))
        for i in range(model.layers)
    ]
    parts.append(Part("head", lambda: Head(site, table, model.vocab, model.hidden, style.rms_norm), ((),)))

    def sample(generator: torch.Generator, device: torch.device) -> Sample:
        tokens = integers(generator, device, model.vocab, seq + 1)
        return {"tokens": tokens[:-1], "labels": tokens[1:]}

    return Network(parts, sample, tables, fused_attention=True)


class Positions(Weighted):
    """Learned position vectors, added to a hidden state."""

    def __init__(self, site: Site, name: str, length: int, width: int) -> None:
        super().__init__()
        self.tp = site.tp
        self.declare("table", name, (length, width), Normal(width), site.device, partial=site.tp.partial)

    def forward(self, x: Tensor) -> Tensor:
        table = self.table[: x.shape[1] * (self.tp.size if self.tp.sequence else 1)]  # those of a context
        return x + (self.tp.group.share(table, 0) if self.tp.sequence else table)


class Embed(nn.Module):
    """Token vectors plus, if learned > 0, learned vectors of that many positions."""

    def __init__(self, site: Site, vocab: int, hidden: int, learned: int) -> None:
        super().__init__()
        self.dtype = site.dtype
        self.tokens = TokenEmbedding(site, "embed.table", vocab, hidden)
        self.positions = Positions(site, "embed.positions", learned, hidden) if learned else None

    def forward(self, state: State, batch: Batch) -> State:
        x = self.tokens(batch["tokens"])
        if self.positions is not None:
            x = self.positions(x)
        return (x.to(self.dtype),)


class Logits(Weighted):
    """The score of every token of the vocabulary, split like the table of token vectors, and the loss."""

    def __init__(self, site: Site, name: str, vocab: int, hidden: int, bias: bool = False) -> None:
        super().__init__()
        self.tp = site.tp
        self.split = site.tp.vocabulary(vocab) if site.tp.size > 1 else None
        self.declare("table", name, (vocab, hidden), Normal(hidden), site.device, self.split)
        self.register_parameter("bias", None)
        if bias:
            self.declare("bias", "head.bias", (vocab,), Constant(0.0), site.device, self.split)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        logits = self.tp.columns(x, self.table, self.bias)
        return cross_entropy(logits, labels, self.tp, self.split)


class Head(nn.Module):
    """The last norm, the logits and the loss of predicting the next token."""

    def __init__(self, site: Site, table: str, vocab: int, hidden: int, rms_norm: bool) -> None:
        super().__init__()
        self.norm = Norm(site, "head.norm", hidden, rms_norm)
        self.logits = Logits(site, table, vocab, hidden)

    def forward(self, state: State, batch: Batch) -> State:
        return (self.logits(self.norm(state[-1]), batch["labels"]).mean(),)
