"""The settings that the modules of a stage are built with: devices, number format, parallelism."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from pacer_worker.collectives import Group
from pacer_worker.phases import Phases
from pacer_worker.recompute import Recompute
from pacer_worker.tensor_parallel import TensorParallel


@dataclass(frozen=True)
class Site:
    device: torch.device  # of the parameters; "meta" allocates no memory
    compute: torch.device  # of everything else
    dtype: torch.dtype  # of the hidden state between layers
    tp: TensorParallel
    recompute: Recompute
    contexts: Group = field(default_factory=lambda: Group([0], 0, None, Phases()))  # that share the sequence
    expert_groups: int = 1  # expert-parallel degree: a rank holds this share of the experts
    eager_attention: bool = False  # avoid scaled_dot_product_attention
