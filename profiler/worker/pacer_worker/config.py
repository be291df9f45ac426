"""Model and plan: the JSON of a Go spec.Config as Python values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from pacer_worker.unsupported import Unsupported


@dataclass(frozen=True)
class Model:
    """The network. Zero means not given, as in Go."""

    name: str = ""
    kind: str = ""
    layers: int = 0
    hidden: int = 0
    ffn: int = 0
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    vocab: int = 0
    seq_len: int = 0
    gated_mlp: bool = False
    tied_embeddings: bool = False
    experts: int = 0
    experts_per_token: int = 0
    expert_ffn: int = 0
    shared_experts: int = 0
    dense_layers: int = 0
    moe_every: int = 0

    @property
    def kv(self) -> int:
        return self.kv_heads or self.heads

    @property
    def head(self) -> int:
        return self.head_dim or self.hidden // self.heads


@dataclass(frozen=True)
class Plan:
    """The execution plan with all defaults."""

    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    vp: int = 1
    mb: int = 1
    ga: int = 1
    zero: int = 0
    shard: int = 0
    schedule: str = ""
    offload: str = "none"
    recompute: str = "none"
    sp: bool = False
    precision: str = ""

    @property
    def devices(self) -> int:
        return self.dp * self.tp * self.pp * self.cp

    @property
    def copies(self) -> int:
        """Ranks of a stage that hold the same dense weights: replicas, and the contexts of each."""
        return self.dp * self.cp

    @property
    def global_batch(self) -> int:
        return self.dp * self.mb * self.ga

    @classmethod
    def read(cls, plan: dict[str, Any]) -> Plan:
        """Reads the JSON of a spec.Plan; absent, zero and empty fields are defaults."""
        return cls(**_known(cls, {key: value for key, value in plan.items() if value}))


@dataclass(frozen=True)
class Config:
    model: Model
    plan: Plan
    seq_len: int
    alone_stage: int = 0  # from 1; 0: every rank runs. See alone.py

    @classmethod
    def read(cls, config: dict[str, Any]) -> Config:
        model = Model(**_known(Model, config["model"]))
        plan = Plan.read(config.get("plan", {}))
        return cls(model, plan, config.get("seq_len") or model.seq_len, config.get("alone_stage") or 0)


def require_shape(model: Model, *fields: str) -> None:
    """Raises Unsupported if one of the fields is not given."""
    missing = [field for field in fields if not getattr(model, field)]
    if missing:
        raise Unsupported(f"model {model.name} ({model.kind}) lacks {', '.join(missing)}")


def _known(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(cls)}
    return {key: value for key, value in values.items() if key in names}
