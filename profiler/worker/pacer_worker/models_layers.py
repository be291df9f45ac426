"""Norms, MLPs and transformer layers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pacer_worker.config import Model
from pacer_worker.models_attention import Attention
from pacer_worker.models_site import Site
from pacer_worker.parallel_layers import Linear
from pacer_worker.weights import Constant, Weighted

State = tuple  # passed from part to part: the hidden states, as tensors
Batch = dict  # the tensors of a micro-batch by name


@dataclass(frozen=True)
class Style:
    """What differs between the layers of the kinds of transformers."""

    rms_norm: bool = False
    bias: bool = True
    activation: str = "gelu"  # gelu, relu, silu
    gated: bool = False
    causal: bool = False
    rotary: bool = False
    post_norm: bool = False  # normalise after the residual sum, as in BERT


class Norm(Weighted):
    """LayerNorm, or RMSNorm (Zhang and Sennrich, 2019), in the number format of its input.

    Autocast would run it in fp32 and keep an fp32 copy of its input. Plans with FSDP do
    not use autocast, so their memory would differ from that of other plans.
    """

    def __init__(self, site: Site, name: str, width: int, rms: bool) -> None:
        super().__init__()
        self.rms = rms
        partial = site.tp.partial
        self.declare("weight", f"{name}.weight", (width,), Constant(1.0), site.device, partial=partial)
        if not rms:
            self.declare("bias", f"{name}.bias", (width,), Constant(0.0), site.device, partial=partial)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            weight = self.weight.to(x.dtype)
            if not self.rms:
                return F.layer_norm(x, weight.shape, weight, self.bias.to(x.dtype))
            if hasattr(F, "rms_norm"):
                return F.rms_norm(x, weight.shape, weight, 1e-5)
            wide = x.float()
            scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
            return (wide * scale).to(x.dtype) * weight


class MLP(nn.Module):
    """Two linear layers, or three when gated (Shazeer, GLU Variants, 2020)."""

    def __init__(self, site: Site, name: str, hidden: int, inner: int, style: Style) -> None:
        super().__init__()
        self.tp, self.gated = site.tp, style.gated
        self.activation = getattr(F, style.activation)
        up = [inner] * (2 if style.gated else 1)  # the gate first
        self.up = Linear(site, f"{name}.up", hidden, sum(up), style.bias, site.tp.share(0, *up))
        self.down = Linear(site, f"{name}.down", inner, hidden, style.bias, site.tp.share(1, inner))

    def forward(self, x: Tensor) -> Tensor:
        y = self.up.columns(x)
        if self.gated:
            gate, y = y.chunk(2, -1)
            y = self.activation(gate) * y
        else:
            y = self.activation(y)
        y = self.tp.leave(self.down(y))
        return self.down.add_bias(y)


class Layer(nn.Module):
    """Self-attention and an MLP, each with a norm and a residual sum.

    bias names the tensor of the micro-batch to add to the attention scores, "" for none.
    mlp replaces the MLP, for example by Experts.
    """

    def __init__(
        self, site: Site, name: str, model: Model, style: Style, bias: str = "", mlp: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.post_norm, self.bias, self.rotary = style.post_norm, bias, style.rotary
        self.attention_norm = Norm(site, f"{name}.attention_norm", model.hidden, style.rms_norm)
        self.attention = Attention(site, f"{name}.attention", model, style.bias, style.causal)
        self.mlp_norm = Norm(site, f"{name}.mlp_norm", model.hidden, style.rms_norm)
        self.mlp = MLP(site, f"{name}.mlp", model.hidden, model.ffn, style) if mlp is None else mlp

    def forward(self, state: State, batch: Batch) -> State:
        (x,) = state
        tables = {"bias": batch[self.bias] if self.bias else None, "rotary": batch["rotary"] if self.rotary else None}
        if self.post_norm:
            x = self.attention_norm(x + self.attention(x, **tables))
            return (self.mlp_norm(x + self.mlp(x)),)
        x = x + self.attention(self.attention_norm(x), **tables)
        return (x + self.mlp(self.mlp_norm(x)),)


class CrossLayer(nn.Module):
    """A decoder layer that also attends to an encoder's output, and passes that on in its state."""

    def __init__(self, site: Site, name: str, model: Model, style: Style, bias: str) -> None:
        super().__init__()
        self.bias = bias
        plain = dataclasses.replace(style, causal=False)
        self.attention_norm = Norm(site, f"{name}.attention_norm", model.hidden, style.rms_norm)
        self.attention = Attention(site, f"{name}.attention", model, style.bias, style.causal)
        self.cross_norm = Norm(site, f"{name}.cross_norm", model.hidden, style.rms_norm)
        self.cross = Attention(site, f"{name}.cross", model, style.bias, cross=True)
        self.mlp_norm = Norm(site, f"{name}.mlp_norm", model.hidden, style.rms_norm)
        self.mlp = MLP(site, f"{name}.mlp", model.hidden, model.ffn, plain)

    def forward(self, state: State, batch: Batch) -> State:
        memory, x = state
        x = x + self.attention(self.attention_norm(x), bias=batch[self.bias])
        x = x + self.cross(self.cross_norm(x), memory)
        return memory, x + self.mlp(self.mlp_norm(x))
