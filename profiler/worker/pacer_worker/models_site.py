"""The settings that the modules of a stage are built with: devices, number format, parallelism."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pacer_worker.recompute import Recompute
from pacer_worker.tensor_parallel import TensorParallel


@dataclass(frozen=True)
class Site:
    device: torch.device  # of the parameters; "meta" allocates no memory
    compute: torch.device  # of everything else
    dtype: torch.dtype  # of the hidden state between layers
    tp: TensorParallel
    recompute: Recompute
    eager_attention: bool = False  # avoid scaled_dot_product_attention
