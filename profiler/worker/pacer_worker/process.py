"""This process of the point: its rank, device, memory and communication with the other ranks."""

from __future__ import annotations

import ctypes
import datetime
import gc
import os
import resource
import sys
from typing import Any, Sequence

import torch
import torch.distributed as dist

from pacer_worker.config import Config
from pacer_worker.unsupported import Unsupported


class WrongDevices(Exception):
    """The visible devices or started processes differ from the request."""


class Process:
    """One rank. Without torchrun it is rank 0 of 1.

    A rank of a plan that runs alone is rank 0 of 1 too: rank and world are of the processes that were started.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self.rank = int(os.environ.get("RANK", "0"))
        self.world = int(os.environ.get("WORLD_SIZE", "1"))
        local = int(os.environ.get("LOCAL_RANK", "0"))
        config = request.get("config", {})
        alone = bool(config.get("alone_stage"))
        self.devices = 1 if alone else request["devices"]
        if self.world != self.devices:
            raise WrongDevices(f"{self.world} processes were started, the plan needs {self.devices}")
        if request["threads"] > 0:
            torch.set_num_threads(request["threads"])
        here = int(os.environ.get("LOCAL_WORLD_SIZE", str(self.devices)))  # other ranks may be on other nodes
        self.device = _device(request, here, local)
        self.groups = ""  # kind of the process groups of a rank that runs alone
        if alone:
            from pacer_worker import alone as one_rank

            self.groups = one_rank.join(Config.read(config))
        else:
            _join(self, request)
        self.memory = CudaMemory(self.device) if self.device.type == "cuda" else HostMemory()

    def synchronize(self) -> None:
        """Waits until the device has finished its work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def largest(self, values: Sequence[float]) -> list[float]:
        """Returns the largest of each value over all ranks, the same on every rank.

        It is a barrier: no rank returns before all have called it.
        """
        return self._reduce(values, "MAX")

    def mean(self, values: Sequence[float]) -> list[float]:
        """Returns the mean of each value over all ranks."""
        return [v / self.world for v in self._reduce(values, "SUM")]

    def finish(self) -> None:
        """Waits until every rank calls it, so that no connection closes too early."""
        try:
            self.largest([0.0])
        except RuntimeError:  # another rank has ended
            pass

    def _reduce(self, values: Sequence[float], op: str) -> list[float]:
        if self.world == 1:
            return list(values)
        x = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(x, getattr(dist.ReduceOp, op))
        return x.tolist()


def _device(request: dict[str, Any], devices: int, local: int) -> torch.device:
    if request["device"] != "cuda":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise Unsupported(f"torch {torch.__version__} sees no CUDA device; it needs a CUDA build and a driver")
    count = torch.cuda.device_count()
    if count != devices:
        raise WrongDevices(f"{count} CUDA devices are visible, the plan needs {devices} on this node")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def _join(process: Process, request: dict[str, Any]) -> None:
    """Creates the default process group, even with one rank: FSDP needs it."""
    if not dist.is_available():
        if process.world > 1:
            raise Unsupported(f"torch {torch.__version__} was built without torch.distributed")
        return
    backend = "nccl" if process.device.type == "cuda" else "gloo"
    alone = process.world == 1
    limit = datetime.timedelta(seconds=request["timeout_s"])
    where = {"store": dist.HashStore()} if alone else {"init_method": "env://"}
    try:
        dist.init_process_group(backend, rank=process.rank, world_size=process.world, timeout=limit, **where)
    except (RuntimeError, ValueError) as err:
        if not alone:
            raise
        print(f"pacer_worker: no process group of one: {err}", file=sys.stderr)


def leave() -> None:
    """Ends the world, and gives the memory of the point back so that it is not counted for the next one."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
    if "torch._dynamo" in sys.modules:  # else the graphs of earlier points use up the limit of recompilations
        torch._dynamo.reset()
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
        if trim is not None:
            trim(0)


class CudaMemory:
    """The memory of the device's allocator."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def reset(self) -> None:
        torch.cuda.reset_peak_memory_stats(self._device)

    def peak(self) -> tuple[float, float]:
        """Returns the peaks since reset: bytes in tensors and bytes reserved on the device."""
        return (
            float(torch.cuda.max_memory_allocated(self._device)),
            float(torch.cuda.max_memory_reserved(self._device)),
        )


class HostMemory:
    """The resident memory of the process.

    Torch does not count memory on the CPU. peak returns the growth of the resident set
    since the first of these objects was made, when torch is imported but nothing is
    built, and the largest resident set itself.
    """

    _before = 0.0  # the libraries load more in the first point of a process; it counts for every point

    def __init__(self) -> None:
        HostMemory._before = HostMemory._before or _status("VmRSS") or _max_rss()

    def reset(self) -> None:
        try:
            with open("/proc/self/clear_refs", "w") as f:
                f.write("5")  # sets VmHWM to VmRSS, proc(5)
        except OSError:
            pass  # the peak is then since the process started

    def peak(self) -> tuple[float, float]:
        mark = _status("VmHWM") or _max_rss()
        return max(mark - self._before, 0.0), mark


def _status(key: str) -> float:
    """Returns a value of /proc/self/status in bytes, 0 if it is missing."""
    try:
        with open("/proc/self/status") as f:
            for line in f:
                if line.startswith(key + ":"):
                    return float(line.split()[1]) * 1024
    except OSError:
        pass
    return 0.0


def _max_rss() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit
