"""Encoder-decoders with relative position bias: T5 (Raffel et al., 2020)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pacer_worker.config import Config, require_shape
from pacer_worker.models_decoder import Head
from pacer_worker.models_layers import Batch, CrossLayer, Layer, Norm, State, Style
from pacer_worker.models_part import Network, Part, Sample, integers
from pacer_worker.models_site import Site
from pacer_worker.parallel_layers import TokenEmbedding
from pacer_worker.weights import Normal, Weighted

BUCKETS, FARTHEST = 32, 128  # of relative distances: number of buckets, distance at which the last begins


def t5(config: Config, site: Site) -> Network:
    """The first half of the layers, rounded down, is the encoder; both sides have seq tokens."""
    model, seq = config.model, config.seq_len
    require_shape(model, "layers", "hidden", "ffn", "heads", "vocab")
    encoders = model.layers // 2
    style = Style(rms_norm=True, bias=False, activation="gelu" if model.gated_mlp else "relu", gated=model.gated_mlp)
    hidden = (seq // site.tp.size if site.tp.sequence else seq, model.hidden)
    table = "embed.table" if model.tied_embeddings else "head.table"

    def embed(name: str, decode: bool) -> nn.Module:
        return Embed(site, name, model.vocab, model.hidden, decode)

    def encode(name: str) -> nn.Module:
        return Layer(site, name, model, style, "encoder_bias")

    def decode(name: str) -> nn.Module:
        return CrossLayer(site, name, model, style, "decoder_bias")

    def bias(name: str, causal: bool) -> nn.Module:
        return RelativeBias(site, name, model.heads, seq, causal)

    parts = [Part("embed", lambda: embed("embed", False), (hidden,))]
    parts += [
        Part(f"encoder_{i}", lambda i=i: encode(f"encoder_{i}"), (hidden,), True, ("encoder_bias",))
        for i in range(encoders)
    ]
    parts.append(Part("target", lambda: embed("target", True), (hidden, hidden)))
    parts += [
        Part(f"decoder_{i}", lambda i=i: decode(f"decoder_{i}"), (hidden, hidden), True, ("decoder_bias",))
        for i in range(model.layers - encoders)
    ]
    parts.append(Part("head", lambda: Head(site, table, model.vocab, model.hidden, rms_norm=True), ((),)))

    def sample(generator: torch.Generator, device: torch.device) -> Sample:
        target = integers(generator, device, model.vocab, seq + 1)
        tokens = integers(generator, device, model.vocab, seq)
        return {"tokens": tokens, "targets": target[:-1], "labels": target[1:]}

    tables = {
        "encoder_bias": lambda: bias("encoder_bias", False),
        "decoder_bias": lambda: bias("decoder_bias", True),
    }
    return Network(parts, sample, tables, fused_attention=True)


class Embed(nn.Module):
    """Token vectors: of the source, or of the target together with the normalised encoder output."""

    def __init__(self, site: Site, name: str, vocab: int, hidden: int, target: bool) -> None:
        super().__init__()
        self.dtype = site.dtype
        self.tokens = TokenEmbedding(site, "embed.table", vocab, hidden)
        self.norm = Norm(site, f"{name}.norm", hidden, rms=True) if target else None

    def forward(self, state: State, batch: Batch) -> State:
        if self.norm is None:
            return (self.tokens(batch["tokens"]).to(self.dtype),)
        return self.norm(state[0]), self.tokens(batch["targets"]).to(self.dtype)


class RelativeBias(Weighted):
    """What each head adds to the score of two tokens, by their distance.

    All layers of the encoder share one, and so do those of the decoder. With causal it
    includes the causal mask.
    """

    def __init__(self, site: Site, name: str, heads: int, length: int, causal: bool) -> None:
        super().__init__()
        self.length, self.causal = length, causal
        split = site.tp.share(1, heads)
        self.declare("table", f"{name}.table", (BUCKETS, heads), Normal(BUCKETS), site.device, split)

    def forward(self) -> Tensor:
        position = torch.arange(self.length, device=self.table.device)
        ahead = position[None, :] - position[:, None]  # how far the key is ahead of the query: [query, key]
        bias = F.embedding(self._bucket(ahead), self.table).permute(2, 0, 1)
        return bias.masked_fill(ahead > 0, float("-inf")) if self.causal else bias

    def _bucket(self, ahead: Tensor) -> Tensor:
        """Returns the bucket of each distance: one per distance when near, then ever wider ranges.

        In an encoder half of the buckets are for keys ahead of the query.
        """
        buckets = BUCKETS if self.causal else BUCKETS // 2
        side = torch.zeros_like(ahead) if self.causal else (ahead > 0).long() * buckets
        distance = (-ahead).clamp(min=0) if self.causal else ahead.abs()
        near = buckets // 2
        ratio = (distance.clamp(min=1).float() / near).log() / math.log(FARTHEST / near)
        far = (near + ratio * (buckets - near)).long().clamp(max=buckets - 1)
        return side + torch.where(distance < near, distance, far)
