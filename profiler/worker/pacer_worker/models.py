"""Finds the network of a model."""

from __future__ import annotations

import re

from pacer_worker.config import Config
from pacer_worker.models_decoder import decoder
from pacer_worker.models_encoder import encoder
from pacer_worker.models_part import Network
from pacer_worker.models_resnet import DEPTHS, resnet
from pacer_worker.models_t5 import t5
from pacer_worker.models_vision import vision
from pacer_worker.models_site import Site
from pacer_worker.unsupported import Unsupported

TRANSFORMERS = {"decoder": decoder, "encoder": encoder, "encoder-decoder": t5, "vision": vision}


def network(config: Config, site: Site) -> Network:
    """Returns the parts of the model, not built yet."""
    model = config.model
    if depth := resnet_depth(model.name):
        if site.tp.size > 1:
            raise Unsupported(f"model {model.name}: tensor parallelism (tp={site.tp.size}) is for transformers")
        return resnet(config, site, depth)
    make = TRANSFORMERS.get(model.kind)
    if make is None:
        raise Unsupported(
            f"model {model.name} has no shape to build a network from (kind {model.kind or 'unknown'}); "
            f"give layers, hidden, ffn, heads and a kind ({', '.join(TRANSFORMERS)}), or use ResNet-18 or ResNet-50"
        )
    if config.seq_len < 1:
        raise Unsupported(f"model {model.name} has no seq_len and the configuration gives none")
    return make(config, site)


def resnet_depth(name: str) -> int:
    """Returns the depth of a known residual network, 0 for other models."""
    match = re.fullmatch(r"resnet(\d+)(v1\.?5)?", re.sub(r"[-_ ]", "", name.lower()))
    return int(match[1]) if match and int(match[1]) in DEPTHS else 0
