"""The process groups of a plan. Neighbouring ranks are tensor-parallel, then contexts, replicas and stages."""

from __future__ import annotations

import datetime
from typing import Sequence

import torch.distributed as dist

from pacer_worker.collectives import Group
from pacer_worker.config import Plan
from pacer_worker.phases import Phases
from pacer_worker.unsupported import Unsupported

# Timeout of collectives in all groups but the default one. Torch's default, ten minutes
# with NCCL, may be shorter than the timeout of the point, which the runner enforces.
GROUP_TIMEOUT = datetime.timedelta(days=1)


class Mesh:
    """The process groups of a plan, as seen from this rank.

    rank = (stage * copies + copy) * tp + shard, so that the ranks that communicate most
    are neighbours and pipeline stages are farthest apart (Narayanan et al., SC 2021). A copy
    is one context of a replica: copy = replica * cp + context.
    Collective: every rank must build it at the same time.
    """

    def __init__(self, plan: Plan, phases: Phases, alone: bool = False) -> None:
        """alone: only this rank of the world runs."""
        self.plan, self.phases, self.alone = plan, phases, alone
        world = dist.get_world_size() if dist.is_initialized() else 1
        if world != plan.devices:
            raise Unsupported(
                f"dp={plan.dp} x tp={plan.tp} x pp={plan.pp} x cp={plan.cp} needs {plan.devices} processes, "
                f"{world} were started"
            )
        self.world = world
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.shard = self.rank % plan.tp
        self.replica = self.rank // plan.tp % plan.copies // plan.cp
        self.stage = self.rank // (plan.tp * plan.copies)
        self._handles: dict[tuple[int, ...], object] = {}

        replicas, shards, stages = range(plan.copies), range(plan.tp), range(plan.pp)
        self.tp = self._own([[self.at(s, r, t) for t in shards] for s in stages for r in replicas])
        self.dp = self._own([[self.at(s, r, t) for r in replicas] for s in stages for t in shards])
        self.pp = self._own([[self.at(s, r, t) for s in stages] for r in replicas for t in shards])
        contexts = [range(r, r + plan.cp) for r in replicas[:: plan.cp]]
        self.cp = self._own([[self.at(s, r, t) for r in of] for s in stages for of in contexts for t in shards])
        if alone:  # only ranks alone have whole experts of their own
            alike = plan.copies * plan.tp
            same = [list(range(s * alike + e, (s + 1) * alike, plan.ep)) for s in stages for e in range(plan.ep)]
            self.same_experts = self._own(same)
        self.all = self._own([list(range(world))])

    def at(self, stage: int, copy: int, shard: int) -> int:
        """Returns the rank at these coordinates."""
        return (stage * self.plan.copies + copy) * self.plan.tp + shard

    def stages(self, stages: Sequence[int]) -> Group | None:
        """Returns the group of these stages that includes this rank, None if there is none.

        Collective over the world. Each group has the ranks of one replica and shard.
        """
        replicas, shards = range(self.plan.copies), range(self.plan.tp)
        return self._mine([[self.at(s, r, t) for s in stages] for r in replicas for t in shards])

    def _own(self, groups: list[list[int]]) -> Group:
        """Like _mine, for groups that together include every rank."""
        mine = self._mine(groups)
        assert mine is not None
        return mine

    def _mine(self, groups: list[list[int]]) -> Group | None:
        """Creates all of the groups, in order, and returns the one with this rank."""
        mine = None
        for ranks in groups:
            if self.alone and self.rank not in ranks:
                continue
            handle = self._handle(tuple(ranks))
            if self.rank in ranks:
                mine = self._group(ranks, ranks.index(self.rank), handle)
        return mine

    def _group(self, ranks: list[int], rank: int, handle: object) -> Group:
        if self.alone:
            from pacer_worker.alone import AloneGroup

            return AloneGroup(ranks, rank, handle, self.phases)
        return Group(ranks, rank, handle, self.phases)

    def _handle(self, ranks: tuple[int, ...]) -> object:
        if len(ranks) == 1:
            return None
        if ranks not in self._handles:
            whole = len(ranks) == self.world
            self._handles[ranks] = dist.group.WORLD if whole else dist.new_group(list(ranks), timeout=GROUP_TIMEOUT)
        return self._handles[ranks]
