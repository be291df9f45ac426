"""python3 pacer_worker --request FILE --out FILE

Measures one configuration and writes the result; with machine_s in the request,
seconds of micro-benchmarks of the devices instead. Start one process per device
by torchrun, or one alone. Rank 0 writes --out; a rank on which the point fails
writes OUT.rankN and exits with status 1.

python3 pacer_worker --serve FOLDER measures one configuration after another in this process, each of one
device or of a rank that runs alone: the request in FOLDER/1.json to FOLDER/1.out, then 2.json and so on, each once it is there. Prints
a line after each, and ends when FOLDER/end is there.

python3 pacer_worker --features [--out FILE] writes the features of the installed torch.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import platform
import sys
import time
import traceback
from typing import Any

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # of the package, not inside it

from pacer_worker import parent, result


def main() -> int:
    parent.end_with_parent()
    parser = argparse.ArgumentParser(prog="pacer_worker", description=__doc__)
    parser.add_argument("--request")
    parser.add_argument("--out")
    parser.add_argument("--serve")
    parser.add_argument("--features", action="store_true")
    args = parser.parse_args()
    if args.features:
        return write_features(args.out)
    if args.serve:
        return serve(args.serve)
    if not args.request or not args.out:
        parser.error("--request and --out are required")
    return measure(read(args.request), args.out)


def read(path: str) -> dict[str, Any]:
    with open(path) as f:
        request: dict[str, Any] = json.load(f)
    if request["version"] != result.VERSION:
        sys.exit(f"the request has version {request['version']}, this worker reads version {result.VERSION}")
    return request


def serve(folder: str) -> int:
    from pacer_worker import process  # imports torch while the first request is on its way

    for number in itertools.count(1):
        request = os.path.join(folder, f"{number}.json")
        while not os.path.exists(request):
            if os.path.exists(os.path.join(folder, "end")):
                return 0
            time.sleep(POLL)
        measure(read(request), os.path.join(folder, f"{number}.out"))
        process.leave()
        print(f"{DONE} {number}", flush=True)
    return 0


POLL = 0.005  # seconds
DONE = "pacer_worker: measured point"  # the Go package worker knows the text


def write_features(out: str | None) -> int:
    found: dict[str, Any] = {"python": platform.python_version(), "executable": sys.executable}
    try:
        import torch

        from pacer_worker.features import features

        found.update(torch=str(torch.__version__), cuda=torch.version.cuda or "")
        found.update(devices=torch.cuda.device_count() if torch.cuda.is_available() else 0)
        found.update(torchrun=importlib.util.find_spec("torch.distributed.run") is not None, features=features())
    except Exception as err:  # a broken installation may raise anything
        found.update(error=f"{type(err).__name__}: {err}")
    if out:
        result.write(out, found)
    else:
        print(json.dumps({"version": result.VERSION, **found}))
    return 0


def measure(request: dict[str, Any], out: str) -> int:
    rank = int(os.environ.get("RANK", "0"))
    try:
        from pacer_worker import machine, point
        from pacer_worker.process import Process

        process = Process(request)
        if "machine_s" in request:
            measured, phases = machine.measure(process, request["machine_s"]), None
        else:
            measured, phases = point.measure(process, request)
        if rank == 0:
            result.write(out, measured)
        process.largest([0.0])  # a barrier: the result is on disk before anything else can fail
    except BaseException as err:  # MemoryError and KeyboardInterrupt too
        outcome, reason = classify(err)
        traceback.print_exc()
        err.__traceback__ = None  # it holds the tensors
        lost_peer = outcome == "failed" and any(sign in reason.lower() for sign in LOST_PEER)
        result.write(f"{out}.rank{rank}", result.failure(outcome, reason, rank, lost_peer))
        return 1
    try:
        if phases is not None:
            measured.update(phase_sec=phases())
        if rank == 0:
            result.write(out, measured)
        process.finish()
        return 0
    except BaseException:  # the point is measured anyway
        traceback.print_exc()
        return 1


# Texts of a RuntimeError for lack of memory: CUDA and NCCL; the CPU allocator of torch
# 1.13, and of later ones; the workspaces of cuBLAS and cuDNN.
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "bad_alloc",
    "cublas_status_alloc_failed",
    "cudnn_status_alloc_failed",
)

# Texts of gloo, NCCL and the rendezvous when another process is gone.
LOST_PEER = (
    "connection closed by peer",
    "connection reset by peer",
    "connection refused",
    "broken pipe",
    "socket closed",
    "remote process exited",
    "remote error",
    "ncclremoteerror",
    "nccl communicator was aborted",
)


def classify(err: BaseException) -> tuple[str, str]:
    """Returns the outcome and the reason for an exception."""
    from pacer_worker.unsupported import Unsupported

    text = " ".join(str(err).split())
    if isinstance(err, Unsupported):
        return "failed", f"unsupported: {text}"
    if isinstance(err, MemoryError) or "OutOfMemory" in type(err).__name__:
        return "oom", text or "MemoryError"
    said = text.lower()
    if isinstance(err, RuntimeError) and any(sign in said for sign in OUT_OF_MEMORY):
        return "oom", text
    return "failed", f"{type(err).__name__}: {text}"


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Skip the teardown of torch, which has been seen to hang; the result is on disk.
    os._exit(status)
