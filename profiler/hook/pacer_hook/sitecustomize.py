"""Starts pacer_hook in a Python that has this directory on PYTHONPATH, then runs the sitecustomize that would have run.

Python imports sitecustomize at its start. The first one on sys.path is taken, which is this one.
"""

import os
import sys


def _start():
    """Starts the hook and the watch of the supervisor. A fault of either never reaches the program."""
    for name in ("pacer_watch", "pacer_hook"):
        try:
            __import__(name).install()
        except Exception:
            pass


def _run_next():
    """Runs the next sitecustomize on sys.path, if there is one, in place of this one. Its errors are its own."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    others = [p for p in sys.path if os.path.abspath(p or os.curdir) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start()
_run_next()
