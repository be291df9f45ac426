"""Activation recomputation: parts of the forward pass run again in the backward pass."""

from __future__ import annotations

from typing import Any, Callable

from torch.utils.checkpoint import checkpoint


class Recompute:
    """What a plan recomputes: nothing, the attention core, or every layer."""

    def __init__(self, mode: str) -> None:
        self.layers = mode == "full"
        self.attention = mode == "selective"


def again(function: Callable[..., Any], *args: Any) -> Any:
    """Calls function such that the backward pass runs it again.

    It stores the arguments and not the intermediate results.

    Nothing in these networks is random in the forward pass, so the state of the
    random number generators need not be kept.
    """
    return checkpoint(function, *args, use_reentrant=False, preserve_rng_state=False)
