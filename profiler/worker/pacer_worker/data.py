"""Synthetic training data, the same for every plan."""

from __future__ import annotations

import torch
from torch import Tensor

from pacer_worker.config import Plan
from pacer_worker.models_part import Network
from pacer_worker.weights import derive


def micro_batches(
    network: Network, plan: Plan, replica: int, seed: int, device: torch.device
) -> list[dict[str, Tensor]]:
    """Returns this replica's micro-batches of the global batch, the same in every step.

    Sample k of the global batch depends on the seed and k alone. Micro-batch m of
    replica r starts at sample (m * dp + r) * mb.
    """
    batches = []
    for m in range(plan.ga):
        first = (m * plan.dp + replica) * plan.mb
        samples = []
        for k in range(first, first + plan.mb):
            generator = torch.Generator(device).manual_seed(derive(seed, "sample", k))
            samples.append(network.sample(generator, device))
        batches.append({name: torch.stack([sample[name] for sample in samples]) for name in samples[0]})
    return batches
