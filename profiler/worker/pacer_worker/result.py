"""The files a worker writes. The Go package worker reads them: result.go."""

from __future__ import annotations

import json
import os
import tempfile
import time
from typing import Any

VERSION = 1


def write(path: str, values: dict[str, Any]) -> None:
    """Writes values as JSON atomically: after a failure path is unchanged.

    NaN and infinity, which JSON lacks, raise ValueError.
    """
    text = json.dumps({"version": VERSION, **values}, allow_nan=False)
    handle, temporary = tempfile.mkstemp(prefix=".result-", dir=os.path.dirname(os.path.abspath(path)))
    try:
        with os.fdopen(handle, "w") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def failure(outcome: str, reason: str, rank: int, lost_peer: bool) -> dict[str, Any]:
    """Returns the result of a rank on which the point failed.

    lost_peer: this rank failed because another rank had ended.
    """
    return {
        "outcome": outcome,
        "reason": reason[:2000],
        "rank": rank,
        "failed_at": time.time(),
        "lost_peer": lost_peer,
    }
