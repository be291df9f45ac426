"""One point, from request to result."""

from __future__ import annotations

import functools
import platform
import time
from typing import Any, Callable

import torch

from pacer_worker import engine as engines
from pacer_worker.features import features
from pacer_worker.interval import half_width, median
from pacer_worker.measure import BadLoss, Measurer
from pacer_worker.process import Process


Phases = Callable[[], dict[str, float]]


def measure(process: Process, request: dict[str, Any]) -> tuple[dict[str, Any], Phases | None]:
    """Measures the requested point; the result is the same on every rank.

    Also returns a function that measures the time of each phase, None if the point
    failed. It runs further steps, which with data parallelism need more memory and may
    fail, so the caller must save the result before calling it.
    """
    begin = time.time()
    options = {"seed": request["seed"], "compile": request["compile"]}
    engine = engines.build(request["config"], process.device, options)
    measurer = Measurer(process, engine, request)
    ready = time.time()
    out: dict[str, Any] = {"outcome": "ok", "rank": 0, **_about(process, engine), "setup_s": ready - begin}
    phases: Phases | None = None
    try:
        warm_up = measurer.warm_up()
        out.update(warmup_sec=warm_up.seconds, warmup_stopped=warm_up.stopped)
        process.memory.reset()
        out.update(began=time.time())
        timed = measurer.timed()
        out.update(ended=time.time(), step_sec=timed.seconds, stopped=timed.stopped)
        out.update(half_width=half_width(timed.seconds) or 0.0, **_peaks(process), **_losses(measurer))
        phases = functools.partial(measurer.phases, median(timed.seconds))
    except BadLoss as err:  # raised on every rank
        out.update(outcome="failed", reason=str(err), failed_at=time.time())
    return out, phases


def _about(process: Process, engine: Any) -> dict[str, Any]:
    cuda = process.device.type == "cuda"
    parameters = process.largest([float(engine.parameters)])[0]
    return {
        "world": process.world,
        "parameters": parameters,
        "notes": dict(engine.notes, **({"alone": process.groups} if process.groups else {})),
        "features": features(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cuda": (torch.version.cuda or "") if cuda else "",
        "device_name": torch.cuda.get_device_name(process.device) if cuda else "cpu",
        "blas": "" if cuda else blas(),
        "threads": torch.get_num_threads(),
    }


# Libraries of matrix products: (part of the file's path, name). The reference library
# comes last, because Debian installs the others as libblas.so.3 too, each in a directory
# with its name.
BLAS = (("openblas", "openblas"), ("libmkl_", "mkl"), ("libblis", "blis"), ("atlas", "atlas"), ("libblas.so", "reference"))


def blas() -> str:
    """Returns the CPU library of matrix products, "" if unknown."""
    if torch.backends.mkl.is_available():  # linked in, without a file of its own
        return "mkl"
    try:
        with open("/proc/self/maps") as f:
            files = {line.split(maxsplit=5)[5].strip().lower() for line in f if line.count("/")}
    except OSError:
        return ""
    return next((name for part, name in BLAS if any(part in file for file in files)), "")


def _peaks(process: Process) -> dict[str, float]:
    peak, reserved = process.largest(list(process.memory.peak()))
    return {"peak_bytes": peak, "reserved_bytes": reserved}


def _losses(measurer: Measurer) -> dict[str, float]:
    """Returns the loss of the first and the last step, the largest over the ranks that have one."""
    none = float("-inf")
    mine = [measurer.losses[0], measurer.losses[-1]] if measurer.losses else [none, none]
    first, last = measurer.process.largest(mine)
    return {"loss_first": first, "loss_last": last} if first > none else {}
