"""Attention: multi-head and grouped-query, self and cross, by fused kernels if torch has them."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pacer_worker.config import Model
from pacer_worker.recompute import again
from pacer_worker.models_site import Site
from pacer_worker.parallel_layers import Linear
from pacer_worker.unsupported import Unsupported

FUSED = hasattr(F, "scaled_dot_product_attention")
FUSED_GROUPS = FUSED and "enable_gqa" in (F.scaled_dot_product_attention.__doc__ or "")


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool, eager: bool = not FUSED) -> Tensor:
    """Returns softmax(q k' / sqrt(d) + bias) v of (batch, heads, sequence, d) tensors.

    k and v may have fewer heads than q; each is then shared by equally many query heads.
    With a bias, causal is ignored: the bias must include the mask. Of causal attention the
    queries are the last ones of the sequence.
    """
    groups = q.shape[1] // k.shape[1]
    earlier = causal and q.shape[2] < k.shape[2]  # keys before the first query
    # Only the CUDA kernels for 16-bit numbers read shared heads in place.
    in_place = not eager and FUSED_GROUPS and q.is_cuda and q.element_size() == 2 and bias is None and not earlier
    if groups > 1 and not in_place:
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    if eager:
        return _eager(q, k, v, bias, causal)
    if bias is not None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))
    if earlier:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=_last(q.shape[2], k.shape[2], q.device))
    if groups > 1 and in_place:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def _last(queries: int, keys: int, device: torch.device) -> Any:
    """Returns the causal mask of the last queries, in the form that fused kernels know (torch 2.3) if there is one."""
    try:
        from torch.nn.attention.bias import causal_lower_right
    except ImportError:
        return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
    return causal_lower_right(queries, keys)


def kernels(q: Tensor) -> str:
    """Returns whether torch may use flash attention for queries like q without a bias, "" if unknown."""
    if not FUSED or not q.is_cuda:
        return ""
    try:
        extra = (False,) if FUSED_GROUPS else ()
        params = torch.backends.cuda.SDPAParams(q, q, q, None, 0.0, True, *extra)
        allowed = torch.backends.cuda.can_use_flash_attention(params)
    except Exception:  # noqa: BLE001 - its arguments differ between versions
        return ""
    return "flash allowed" if allowed else "flash not allowed"


def _eager(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool) -> Tensor:
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias
    elif causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1 + k.shape[2] - q.shape[2])
        scores = scores.masked_fill(future, float("-inf"))
    return torch.matmul(scores.float().softmax(-1).to(v.dtype), v)


class Rotary(nn.Module):
    """The angles of rotary position embedding (Su et al., RoFormer, 2021), base 10000.

    Layers share the table: the cosines above the sines, (2, sequence, d).
    """

    def __init__(self, site: Site, length: int, width: int) -> None:
        super().__init__()
        if width % 2:
            raise Unsupported(f"rotary position embedding needs an even head_dim, not {width}")
        self.length, self.width, self.device, self.dtype = length, width, site.compute, site.dtype

    def forward(self) -> Tensor:
        steps = torch.arange(0, self.width, 2, device=self.device, dtype=torch.float32)
        angles = torch.outer(torch.arange(self.length, device=self.device).float(), 10000 ** (-steps / self.width))
        angles = torch.cat((angles, angles), -1)
        return torch.stack((angles.cos(), angles.sin())).to(self.dtype)


def rotate(x: Tensor, table: Tensor) -> Tensor:
    """Rotates the pairs of numbers of a (batch, heads, sequence, d) tensor by the angles of their position."""
    first, second = x.chunk(2, -1)
    return x * table[0] + torch.cat((-second, first), -1) * table[1]


class Attention(nn.Module):
    """The attention block: projections and attend, with the heads split over the tensor-parallel ranks.

    The hidden state x attends to itself, or with cross=True to memory, the output of an
    encoder. If there are fewer key/value heads than ranks, several ranks hold each.
    """

    def __init__(
        self,
        site: Site,
        name: str,
        model: Model,
        bias: bool,
        causal: bool = False,
        cross: bool = False,
    ) -> None:
        super().__init__()
        self.site, self.tp, self.causal, self.cross = site, site.tp, causal, cross
        self.width = model.head
        self.heads, self.kv_heads = model.heads // self.tp.size, max(model.kv // self.tp.size, 1)

        query = (model.heads * self.width, self.tp.size, self.tp.rank)
        holders = min(self.tp.size, model.kv)  # number of pieces of the key/value heads
        kv = (model.kv * self.width, holders, self.tp.rank * holders // self.tp.size)
        shared = holders < self.tp.size
        hidden, rows = model.hidden, [query, kv, kv]
        if cross:
            self.q = Linear(site, f"{name}.q", hidden, query[0], bias, self.tp.pieces(0, query))
            rows = rows[1:]
        outputs = sum(block[0] for block in rows)
        partial = len(rows) - 2 if shared else None
        parts = "kv" if cross else "qkv"
        self.qkv = Linear(site, f"{name}.{parts}", hidden, outputs, bias, self.tp.pieces(0, *rows), partial)
        self.out = Linear(site, f"{name}.out", query[0], hidden, bias, self.tp.share(1, query[0]))

    def forward(
        self, x: Tensor, memory: Tensor | None = None, bias: Tensor | None = None, rotary: Tensor | None = None
    ) -> Tensor:
        q, k, v = self._project(x, memory)
        if rotary is not None:
            q, k = rotate(q, rotary), rotate(k, rotary)
        y = self._attend(q, k, v, bias) if self.site.contexts.size == 1 else self._in_context(q, k, v)
        y = self.tp.leave(self.out(y.transpose(1, 2).flatten(2)))
        return self.out.add_bias(y)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
        args = (q, k, v, bias, self.causal, self.site.eager_attention or not FUSED)
        return again(attend, *args) if self.site.recompute.attention else attend(*args)

    def _in_context(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Context parallelism: this rank's queries see the keys and values of all ranks.

        Causal ranks have two of 2 cp parts of the sequence, one early and one late, so that all do the same work
        (Llama 3, 2024, section 3.3.2). This is the first rank, with the first part and the last.
        """
        k, v = (self.site.contexts.all_gather(x, 2) for x in (k, v))
        early, late = q.chunk(2, 2)
        n = early.shape[2]
        return torch.cat((self._attend(early, k[:, :, :n], v[:, :, :n]), self._attend(late, k, v)), 2)

    def _project(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        wide, narrow = self.heads * self.width, self.kv_heads * self.width
        if self.cross:
            q = self.q.columns(x)
            k, v = self.qkv.columns(memory).split((narrow, narrow), -1)
        else:
            q, k, v = self.qkv.columns(x).split((wide, narrow, narrow), -1)
        return self._by_head(q), self._by_head(k), self._by_head(v)

    def _by_head(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.width)).transpose(1, 2)
