"""Where and how the modules of a stage are built."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pacer_worker.recompute import Recompute
from pacer_worker.tensor_parallel import TensorParallel


@dataclass(frozen=True)
class Site:
    device: torch.device  # parameters are made on; "meta" has no memory for them
    compute: torch.device  # of everything else
    dtype: torch.dtype  # of the hidden state between layers
    tp: TensorParallel
    recompute: Recompute
    eager_attention: bool = False  # do without scaled_dot_product_attention
