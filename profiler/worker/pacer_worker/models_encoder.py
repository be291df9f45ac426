"""Bidirectional encoders with a masked-token loss: BERT (Devlin et al., 2019)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pacer_worker.config import Config, require_shape
from pacer_worker.models_decoder import Logits, Positions
from pacer_worker.models_layers import Batch, Layer, Norm, State, Style
from pacer_worker.models_part import Network, Part, Sample, integers
from pacer_worker.models_site import Site
from pacer_worker.parallel_layers import Linear, TokenEmbedding
from pacer_worker.weights import Constant, Weighted

MASKED = 0.15  # share of the tokens that are masked and predicted
MASK_TOKEN = 103  # in BERT's vocabulary; any other token would do


def encoder(config: Config, site: Site) -> Network:
    model, seq = config.model, config.seq_len
    require_shape(model, "layers", "hidden", "ffn", "heads", "vocab")
    style = Style(post_norm=True, gated=model.gated_mlp)
    state = ((seq // site.tp.size if site.tp.sequence else seq, model.hidden),)
    table = "embed.table" if model.tied_embeddings else "head.table"

    parts = [Part("embed", lambda: Embed(site, model.vocab, model.hidden, seq), state)]
    parts += [
        Part(f"layer_{i}", lambda i=i: Layer(site, f"layer_{i}", model, style), state, layer=True)
        for i in range(model.layers)
    ]
    parts.append(Part("head", lambda: Head(site, table, model.vocab, model.hidden), ((),)))

    def sample(generator: torch.Generator, device: torch.device) -> Sample:
        labels = integers(generator, device, model.vocab, seq)
        order = torch.randperm(seq, generator=generator, device=device)
        masked = torch.zeros(seq, dtype=torch.bool, device=device)
        masked[order[: max(1, round(MASKED * seq))]] = True
        tokens = labels.masked_fill(masked, min(MASK_TOKEN, model.vocab - 1))
        return {"tokens": tokens, "labels": labels, "masked": masked}

    return Network(parts, sample, {}, fused_attention=True)


class Embed(Weighted):
    """Token, position and segment vectors, normalised. All tokens are in the first of two segments."""

    def __init__(self, site: Site, vocab: int, hidden: int, length: int) -> None:
        super().__init__()
        self.dtype = site.dtype
        self.tokens = TokenEmbedding(site, "embed.table", vocab, hidden)
        self.positions = Positions(site, "embed.positions", length, hidden)
        self.declare("segments", "embed.segments", (2, hidden), Constant(0.0), site.device, partial=site.tp.partial)
        self.norm = Norm(site, "embed.norm", hidden, rms=False)

    def forward(self, state: State, batch: Batch) -> State:
        x = self.positions(self.tokens(batch["tokens"])) + self.segments[0]
        return (self.norm(x).to(self.dtype),)


class Head(nn.Module):
    """A transformed hidden state, its logits with a bias, and the loss of the masked tokens."""

    def __init__(self, site: Site, table: str, vocab: int, hidden: int) -> None:
        super().__init__()
        self.transform = Linear(site, "head.transform", hidden, hidden, True, partial=site.tp.partial)
        self.norm = Norm(site, "head.norm", hidden, rms=False)
        self.logits = Logits(site, table, vocab, hidden, bias=True)

    def forward(self, state: State, batch: Batch) -> State:
        x = self.norm(F.gelu(self.transform(state[-1])))
        losses: Tensor = self.logits(x, batch["labels"])
        masked = batch["masked"]
        return (losses.masked_fill(~masked, 0).sum() / masked.sum(),)
