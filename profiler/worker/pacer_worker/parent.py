"""Ends this process with its parent, so that no rank is left when the launcher and its supervisors are killed."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent() -> None:
    """Makes the kernel kill this process when its parent ends. Call it before torch is imported, which takes seconds.

    A parent that ended before this call is noticed by PACER_SUPERVISOR, the id of the supervisor and its PID namespace.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    pid, _, namespace = os.environ.get("PACER_SUPERVISOR", "").partition(" ")
    try:
        here = os.readlink("/proc/self/ns/pid")
    except OSError:
        return
    if pid and namespace == here and not os.path.exists(f"/proc/{pid}"):
        os._exit(1)
