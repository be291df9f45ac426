"""The training engine: builds this rank's share of the network and trains it."""

from __future__ import annotations

from typing import Any, Iterator

import torch
from torch import Tensor

from pacer_worker import features, zero
from pacer_worker.collectives import Group
from pacer_worker.config import Config, Model, Plan
from pacer_worker.data import micro_batches
from pacer_worker.gradients import PartialSums, SharedSums
from pacer_worker.mesh import Mesh
from pacer_worker.models import network, resnet_depth
from pacer_worker.models_attention import FUSED, kernels
from pacer_worker.models_experts import split_experts, without
from pacer_worker.models_part import Network
from pacer_worker.models_site import Site
from pacer_worker.optimizer import HostAdamW, Settings, Several, adamw
from pacer_worker.phases import Clock, Phases, no_clock
from pacer_worker.pipeline import Links, State, one_forward_one_backward
from pacer_worker.precision import Precision
from pacer_worker.recompute import Recompute
from pacer_worker.replicas import Flushed, Overlapped, Replicas
from pacer_worker.stage import Stage, split
from pacer_worker.tensor_parallel import TensorParallel
from pacer_worker.unsupported import Unsupported
from pacer_worker.weights import Weight, count, declared, initialise

__all__ = ["Engine", "Unsupported", "build"]


def build(config: dict[str, Any], device: torch.device, options: dict[str, Any]) -> Engine:
    """Builds the engine of this rank; collective over all ranks.

    config is the JSON of a spec.Config; its plan must use all ranks. Options:
    seed (int, of weights and data), compile (bool), learning_rate and epsilon
    (Adam's), eager_attention (bool, no fused attention). Raises Unsupported.
    """
    return Engine(Config.read(config), device, options)


class Engine:
    """One rank of a training run."""

    parameters: int  # of the whole, unsharded network
    notes: dict[str, str]  # the implementation used for each feature
    can_skip_sync: bool  # step(sync=False) leaves out the gradient exchange between replicas

    def __init__(self, config: Config, device: torch.device, options: dict[str, Any]) -> None:
        plan, seed = config.plan, int(options.get("seed", 0))
        _check_supported(config, device, options)
        self.plan, self.device, self.phases = plan, device, Phases()
        self.precision = Precision(plan.precision, device)
        self.precision.use()
        self.mesh = Mesh(plan, self.phases, config.alone_stage > 0)
        self.notes = {"precision": self.precision.name}

        sharded = plan.zero >= 2 and (plan.copies > 1 or plan.offload == "params")
        site = self._site(sharded, options)
        self.network = network(config, site)
        whole = whole_network(config)
        rows = split(whole, plan.pp)
        self.parameters = parameters(whole)

        first = sum(len(row) for row in rows[: self.mesh.stage])
        parts = self.network.parts[first : first + len(rows[self.mesh.stage])]
        self.stage = Stage(self.network, parts, site, self.precision.autocast)
        self.links = self._links(first, len(parts))
        if self.network.fused_attention:
            self._note_attention(config.model, site)

        self.batches = micro_batches(self.network, plan, self.mesh.replica, seed, device)
        self.replicas = self._replicas(sharded, seed)
        self._compile(options)
        self.can_skip_sync = self.replicas.can_skip_sync and not self.mesh.alone
        self.partial_sums = PartialSums(self.stage, self.mesh.tp)
        self.shared_sums = SharedSums(whole, rows, self.stage, self.mesh)
        settings = Settings(**{k: options[k] for k in ("learning_rate", "epsilon") if k in options})
        self.optimizer = self._optimizer(settings)
        self.precision.guard(self.mesh.all)
        self._connect()

    def step(self, clock: Clock, sync: bool = True) -> Tensor | None:
        """Takes one optimizer step; returns this replica's mean loss on the last stage, else None.

        With sync=False the replicas do not average their gradients, and diverge; the
        difference in time is the cost of the averaging.
        """
        self.phases.clock = clock
        try:
            return self._step(sync)
        finally:
            self.phases.clock = no_clock

    def _step(self, sync: bool) -> Tensor | None:
        self.optimizer.zero_grad(set_to_none=self.replicas.fresh)
        losses: list[Tensor] = []
        final = self.plan.ga - 1

        def forward(m: int, received: State) -> State:
            with self.replicas.micro_batch(m == final, sync), self.phases("forward"):
                state = self.replicas.run(received, self.batches[m])
            if self.stage.last:
                losses.append(state[0].detach())
            return state

        def backward(m: int, received: State, sent: State, gradients: State) -> State:
            with self.replicas.micro_batch(m == final, sync), self.phases("backward"):
                if self.stage.last:
                    self.precision.scale(sent[0] / self.plan.ga).backward()
                else:
                    torch.autograd.backward(sent, gradients)
            return tuple(x.grad for x in received)

        one_forward_one_backward(self.links, self.plan.ga, forward, backward)
        self.replicas.finish(sync)
        self.partial_sums()
        self.shared_sums()
        with self.phases("optimizer"):
            self.precision.step(self.optimizer)
        return torch.stack(losses).mean() if losses else None

    def tensors(self, gradients: bool = False) -> Iterator[tuple[Weight, Tensor]]:
        """Yields this rank's piece of each parameter or gradient; collective with FSDP2."""
        for weight, module, attribute in declared(self.stage):
            parameter = getattr(module, attribute)
            tensor = parameter.grad if gradients else parameter.detach()
            yield weight, tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor

    def _site(self, sharded: bool, options: dict[str, Any]) -> Site:
        meta = sharded and zero.fsdp2(self.device.type) is not None
        return Site(
            device=torch.device("meta") if meta else self.device,
            compute=self.device,
            dtype=self.precision.dtype,
            tp=TensorParallel(self.mesh.tp, self.plan.sp),
            recompute=Recompute(self.plan.recompute),
            contexts=self.mesh.cp,
            expert_groups=self.plan.ep,
            eager_attention=bool(options.get("eager_attention", False)),
        )

    def _note_attention(self, model: Model, site: Site) -> None:
        if not FUSED or site.eager_attention:
            self.notes["attention"] = "eager"
            return
        query = torch.empty(1, model.heads // self.plan.tp, 128, model.head, device=self.device, dtype=site.dtype)
        biased = model.kind == "encoder-decoder"  # flash attention takes no bias
        which = "" if biased else kernels(query)
        self.notes["attention"] = f"sdpa ({which})" if which else "sdpa"
        if site.recompute.attention:
            self.notes["recompute"] = "selective: attention is run again, although fused attention stores no scores"

    def _links(self, first: int, parts: int) -> Links:
        def shapes(part: int) -> list[tuple[int, ...]]:
            return [(self.plan.mb, *shape) for shape in self.network.parts[part].out] if part >= 0 else []

        kind = Links
        if self.mesh.alone:
            from pacer_worker.alone import AloneLinks

            kind = AloneLinks
        return kind(self.mesh.pp, shapes(first - 1), shapes(first + parts - 1), self.precision.dtype, self.device)

    def _replicas(self, sharded: bool, seed: int) -> Replicas:
        """Initializes the weights of the stage, and shards or wraps it for data parallelism."""
        replicas: Replicas
        group = self.mesh.dp
        if sharded:
            handle = group.handle or zero.own_group(self.device)
            self.precision.cast = False  # FSDP provides weights in the narrow format
            if zero.fsdp2(self.device.type) is not None:
                replicas = zero.FullyShard(self.stage, group, handle, self.plan, self.precision)
                initialise(self.stage, seed, self.device)
            else:
                initialise(self.stage, seed, self.device)
                replicas = zero.FullySharded(self.stage, group, handle, self.plan, self.precision)
            self.notes["zero"] = replicas.note
            return replicas
        initialise(self.stage, seed, self.device)
        if self.device.type == "cuda":  # else convolutions would convert the layout in every step
            self.stage.to(memory_format=torch.channels_last)
        if group.size == 1:
            if self.plan.zero:
                self.notes["zero"] = "none: there is one replica"
            return Replicas(self.stage, group)
        replicas = Overlapped(self.stage, group, self.mesh.alone) if self.plan.pp == 1 else Flushed(self.stage, group)
        self.notes["data_parallel"] = replicas.note
        return replicas

    def _compile(self, options: dict[str, Any]) -> None:
        if options.get("compile"):
            self.stage.compile()
            self.notes["compile"] = "each layer"

    def _optimizer(self, settings: Settings) -> Any:
        kind: Any = adamw
        if self.plan.offload == "optimizer":
            kind = HostAdamW
            self.notes["offload"] = "AdamW on the host"
        elif self.plan.offload == "params":
            self.notes["offload"] = "CPUOffloadPolicy"
        parameters = [p for p in self.stage.parameters() if p.requires_grad]
        if self.plan.zero == 1 and self.plan.copies > 1:
            self.notes["zero"] = "ZeroRedundancyOptimizer: gradients all-reduced, then fp32 weights broadcast"
            experts = split_experts(self.stage) if self.plan.ep > 1 else []
            one = zero.sharded_optimizer(without(parameters, experts), kind, self.mesh.dp, **settings.kwargs())
            if not experts:
                return one
            if self.mesh.same_experts.size == 1:
                return Several(one, kind(experts, **settings.kwargs()))
            return Several(one, zero.sharded_optimizer(experts, kind, self.mesh.same_experts, **settings.kwargs()))
        return kind(parameters, **settings.kwargs())

    def _connect(self) -> None:
        """Connects all groups now, not in the first step."""
        for group in (self.mesh.tp, self.mesh.dp, self.mesh.pp):
            group.all_reduce(torch.zeros(1, device=self.device))


def whole_network(config: Config) -> Network:
    """Returns the unsplit network, with modules that allocate no memory."""
    meta = torch.device("meta")
    site = Site(
        device=meta,
        compute=meta,
        dtype=torch.float32,
        tp=TensorParallel(Group([0], 0, None, Phases()), False),
        recompute=Recompute("none"),
    )
    return network(config, site)


def parameters(whole: Network) -> int:
    """Returns the parameters of a network."""
    makers = [part.make for part in whole.parts] + list(whole.tables.values())
    return count(torch.nn.ModuleList([make() for make in makers]))


def _check_supported(config: Config, device: torch.device, options: dict[str, Any]) -> None:
    model, plan = config.model, config.plan
    reasons = features.lacks(plan, bool(options.get("compile")), device.type, config.alone_stage > 0)
    if model.experts and model.kind != "decoder":
        reasons.append(f"model {model.name}: experts are implemented for decoders, not for kind {model.kind}")
    if plan.ep > 1 and (not model.experts or model.experts % plan.ep):
        reasons.append(f"ep={plan.ep} does not divide {model.experts} experts")
    if plan.cp > 1 and model.kind != "decoder":
        reasons.append(f"cp={plan.cp} is implemented for decoders, not for kind {model.kind}")
    if not resnet_depth(model.name):
        reasons += _indivisible(model, plan, config.seq_len)
    if reasons:
        raise Unsupported("; ".join(reasons))


def _indivisible(model: Model, plan: Plan, seq: int) -> list[str]:
    tp, kv, reasons = plan.tp, model.kv, []
    if model.heads % tp:
        reasons.append(f"tp={tp} does not divide {model.heads} heads")
    for width in (model.ffn, model.expert_ffn):
        if width % tp:
            reasons.append(f"tp={tp} does not divide an ffn width of {width}")
    if kv and (tp % kv if kv < tp else kv % tp):
        reasons.append(f"tp={tp} and {kv} key/value heads do not divide one another")
    if kv and model.heads % kv:
        reasons.append(f"{kv} key/value heads do not divide {model.heads} heads")
    if kv and tp > kv and plan.zero >= 2 and plan.dp > 1:
        reasons.append(
            f"zero={plan.zero} cannot shard key/value heads that several of the tp={tp} ranks hold: "
            f"use tp of at most {kv}"
        )
    if plan.cp > 1 and seq % (2 * plan.cp):
        reasons.append(f"cp={plan.cp} needs {2 * plan.cp} equal parts of seq_len={seq}, two for each rank")
    if plan.sp and seq // plan.cp % tp:
        reasons.append(f"sp=1 needs tp={tp} to divide the {seq // plan.cp} tokens of a rank")
    return reasons
