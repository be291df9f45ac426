"""Pipeline parallelism: the messages between stages, and the order of micro-batches."""

from __future__ import annotations

from collections import deque
from typing import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from pacer_worker.collectives import Group

State = tuple  # of tensors


class Links:
    """The connections of one stage to the one before and the one after it.

    At the ends of the pipeline, where one neighbour is missing, receiving from it
    returns () and sending to it does nothing.
    """

    def __init__(
        self,
        group: Group,
        inputs: Sequence[tuple[int, ...]],
        outputs: Sequence[tuple[int, ...]],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """inputs and outputs are the shapes of the received and of the sent state."""
        self.group, self.phases = group, group.phases
        self.stage, self.stages = group.rank, group.size
        self.first, self.last = self.stage == 0, self.stage == self.stages - 1
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.dtype, self.device = dtype, device

    def exchange(
        self,
        forward: State | None = None,
        backward: State | None = None,
        want_forward: bool = False,
        want_backward: bool = False,
    ) -> State:
        """Sends activations forward and gradients back, and returns the received state.

        A send and a receive go out as one batch, since two neighbours that send to
        each other could deadlock. At most one of want_forward and want_backward is set.
        """
        received = self._buffers(self.inputs, want_forward and not self.first)
        received += self._buffers(self.outputs, want_backward and not self.last)
        ops = []
        if forward is not None and not self.last:
            ops += self._ops(dist.isend, [x.detach().contiguous() for x in forward], self.stage + 1, 0)
        if backward is not None and not self.first:
            ops += self._ops(dist.isend, [x.contiguous() for x in backward], self.stage - 1, 1)
        if received:
            peer, direction = (self.stage - 1, 0) if want_forward else (self.stage + 1, 1)
            ops += self._ops(dist.irecv, received, peer, direction)
        if ops:
            with self.phases("wait" if received else "communication"):
                for request in dist.batch_isend_irecv(ops):
                    request.wait()
        if want_forward:
            for x in received:
                x.requires_grad_()
        return tuple(received)

    def _buffers(self, shapes: list[tuple[int, ...]], wanted: bool) -> list[Tensor]:
        return [torch.empty(shape, dtype=self.dtype, device=self.device) for shape in shapes] if wanted else []

    def _ops(self, op: Callable[..., object], tensors: list[Tensor], stage: int, direction: int) -> list[dist.P2POp]:
        peer = self.group.ranks[stage]
        return [dist.P2POp(op, x, peer, self.group.handle, 2 * i + direction) for i, x in enumerate(tensors)]


# Runs micro-batch m forward from the state received, and returns the state to send.
Forward = Callable[[int, State], State]
# Runs micro-batch m backward from the gradients of the state it sent, and returns
# those of the state it received. Arguments: m, received, sent, gradients.
Backward = Callable[[int, State, State, State], State]


def one_forward_one_backward(links: Links, micro_batches: int, forward: Forward, backward: Backward) -> None:
    """Runs all micro-batches in the 1F1B order (Narayanan et al., PipeDream-Flush, 2021).

    Stage i of p (from 0) first runs p-i-1 micro-batches forward, so that the last stage
    gets work, then alternates forward and backward passes, and ends with the remaining
    backward passes. A single stage only alternates.
    """
    waiting: deque[tuple[State, State]] = deque()  # (received, sent) of micro-batches before their backward pass
    warmup = min(links.stages - links.stage - 1, micro_batches)
    for m in range(warmup):
        received = links.exchange(want_forward=True)
        sent = forward(m, received)
        waiting.append((received, sent))
        links.exchange(forward=sent)

    steady = micro_batches - warmup
    received = links.exchange(want_forward=True) if steady else ()
    for m in range(steady):
        sent = forward(warmup + m, received)
        waiting.append((received, sent))
        gradients = links.exchange(forward=sent, want_backward=True)
        del received, sent
        result = backward(m, *waiting.popleft(), gradients)
        received = links.exchange(backward=result, want_forward=m + 1 < steady)

    for m in range(steady, micro_batches):
        gradients = links.exchange(want_backward=True)
        links.exchange(backward=backward(m, *waiting.popleft(), gradients))
