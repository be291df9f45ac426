"""Megatron-style tensor parallelism: split tensors, their exchanges and the split loss.

A block enters with the hidden state, splits its first matrix by columns (output
features) and its second by rows (input features), and leaves with one sum over
the ranks (Shoeybi et al., Megatron-LM, 2019). With sequence parallelism the
hidden state between blocks is split along the sequence, and the sums become
all-gathers and reduce-scatters (Korthikanti et al., 2022). Hidden states are
(batch, sequence, features).
"""

from __future__ import annotations

from typing import Any, Callable, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from pacer_worker.collectives import Group
from pacer_worker.weights import Split

SEQUENCE = 1  # dimension of a hidden state

Function = TypeVar("Function", bound=Callable[..., Any])


def uncompiled(function: Function) -> Function:
    """Excludes function from torch.compile, in versions of torch that have it."""
    disable = getattr(getattr(torch, "compiler", None), "disable", None)
    return disable(function) if disable else function


@uncompiled
def _exchange(function: type[torch.autograd.Function], x: Tensor, group: Group) -> Tensor:
    return function.apply(x, group)


class TensorParallel:
    """This rank's share of split layers, and the sums between them."""

    def __init__(self, group: Group, sequence: bool) -> None:
        self.group = group
        self.rank, self.size = group.rank, group.size
        self.sequence = sequence and group.size > 1

    @property
    def partial(self) -> int | None:
        """Weight.partial of a tensor that is not split but used only on this rank's tokens."""
        return 0 if self.sequence else None

    def enter(self, x: Tensor) -> Tensor:
        """Passes a hidden state to layers split by columns."""
        if self.size == 1:
            return x
        return _exchange(_GatherTokens if self.sequence else _Copy, x, self.group)

    @uncompiled
    def columns(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Applies a linear layer split by columns to a hidden state.

        With sequence parallelism the gathered state is not kept for the backward
        pass, which gathers it again (Korthikanti et al., section 4.2.2).
        """
        if not self.sequence:
            return F.linear(self.enter(x), weight, bias)
        with torch.autocast(x.device.type, enabled=False):  # it has no effect inside the function's backward
            weight, bias = weight.to(x.dtype), None if bias is None else bias.to(x.dtype)
            return _GatheredLinear.apply(x, weight, bias, self.group)

    def leave(self, x: Tensor) -> Tensor:
        """Sums the partial results of layers split by rows into a hidden state."""
        if self.size == 1:
            return x
        return _exchange(_ScatterSum if self.sequence else _Sum, x, self.group)

    def split_tokens(self, x: Tensor) -> Tensor:
        """Turns a tensor that every rank has computed whole into a hidden state."""
        return _exchange(_SplitTokens, x, self.group) if self.sequence else x

    def join_tokens(self, x: Tensor) -> Tensor:
        """Passes a hidden state to layers that every rank computes whole."""
        return _exchange(_JoinTokens, x, self.group) if self.sequence else x

    def share(self, axis: int, *blocks: int) -> Split:
        """Splits the axis of a tensor made of blocks: each rank gets an equal share of every block."""
        return self.pieces(axis, *((block, self.size, self.rank) for block in blocks))

    def pieces(self, axis: int, *blocks: tuple[int, int, int]) -> Split:
        """Splits an axis made of blocks, each given as (length, pieces, index of this rank's piece)."""
        ranges, starts, offset = [], [], 0
        for length, pieces, index in blocks:
            piece = length // pieces
            ranges.append((offset + index * piece, offset + (index + 1) * piece))
            starts.append(offset)
            offset += length
        return Split(axis, tuple(ranges), sum(stop - start for start, stop in ranges), tuple(starts))

    def vocabulary(self, length: int) -> Split:
        """Splits the rows of a vocabulary, padded to equal length on the last ranks."""
        size = -(-length // self.size)
        start = min(self.rank * size, length)
        return Split(0, ((start, min(start + size, length)),), size)


@uncompiled
def cross_entropy(logits: Tensor, labels: Tensor, tp: TensorParallel, vocabulary: Split | None) -> Tensor:
    """Returns the loss of each label; logits are split like the vocabulary, or whole if that is None."""
    logits = logits.float()
    if tp.size == 1 or vocabulary is None:
        return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none").view(labels.shape)
    start, stop = vocabulary.ranges[0]
    if stop - start < vocabulary.size:
        padding = torch.arange(vocabulary.size, device=logits.device) >= stop - start
        logits = logits.masked_fill(padding, float("-inf"))
    return _SplitCrossEntropy.apply(logits, labels, tp.group, start, stop)


class _Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.group.all_reduce(grad.clone(memory_format=torch.contiguous_format)), None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        return group.all_reduce(x.clone(memory_format=torch.contiguous_format))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


class _GatherTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return group.all_gather(x, SEQUENCE)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.group.reduce_scatter(grad, SEQUENCE), None


class _GatheredLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, group: Group) -> Tensor:
        ctx.group = group
        ctx.save_for_backward(x, weight)
        return F.linear(group.all_gather(x, SEQUENCE), weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        rows = grad.flatten(0, -2)
        tokens = ctx.group.all_gather(x, SEQUENCE).flatten(0, -2)
        to_weight = rows.t().mm(tokens)
        to_bias = rows.sum(0) if ctx.needs_input_grad[2] else None
        return ctx.group.reduce_scatter(grad.matmul(weight), SEQUENCE), to_weight, to_bias, None


class _ScatterSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return group.reduce_scatter(x, SEQUENCE)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.group.all_gather(grad, SEQUENCE), None


class _SplitTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return group.share(x, SEQUENCE).contiguous()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.group.all_gather(grad, SEQUENCE), None


class _JoinTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return group.all_gather(x, SEQUENCE)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.group.share(grad, SEQUENCE).contiguous(), None


class _SplitCrossEntropy(torch.autograd.Function):
    """Cross entropy over logits with columns split over several ranks.

    The ranks exchange three numbers per token: the largest logit, the sum of
    exponentials and the label's logit.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, group: Group, start: int, stop: int) -> Tensor:
        top = group.all_reduce(logits.amax(-1), largest=True)
        logits = logits - top.unsqueeze(-1)
        elsewhere = (labels < start) | (labels >= stop)
        column = (labels - start).masked_fill(elsewhere, 0).unsqueeze(-1)
        label = logits.gather(-1, column).squeeze(-1).masked_fill(elsewhere, 0)
        group.all_reduce(label)
        softmax = logits.exp_()
        total = group.all_reduce(softmax.sum(-1))
        softmax.div_(total.unsqueeze(-1))
        ctx.save_for_backward(softmax, column, elsewhere)
        return total.log() - label

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        softmax, column, elsewhere = ctx.saved_tensors
        grad = grad.unsqueeze(-1)
        there = grad.masked_fill(elsewhere.unsqueeze(-1), 0)
        return (softmax * grad).scatter_add(-1, column, -there), None, None, None, None
