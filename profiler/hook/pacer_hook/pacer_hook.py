"""Times the training steps of a PyTorch program that is not changed for it.

A training step is one update of the parameters. The hook notes the end of every optimizer step: with a CUDA event on
the current stream where CUDA is in use, else on the host's clock. It writes JSON lines to one file per process in the
directory PACER_HOOK_OUT: "start", one "step" per training step, "fault" for each of its own errors, and "end".

Several calls of optimizers are one training step unless an optimizer is called again after a backward pass: a model with
two optimizers, one optimizer per parameter, and DeepSpeed's call per group of parameters are one step each.

No error of the hook reaches the program. Nothing is written before the first optimizer step. A step that is captured
into a CUDA graph is not seen.
"""

import atexit
import functools
import json
import os
import platform
import sys
import time
import weakref

_OUT = "PACER_HOOK_OUT"
_NODE = "PACER_HOOK_NODE"
_MODULE = "torch.optim.optimizer"
_VERSION = 1
_MAX_FAULTS = 20  # after this many errors the hook stops
_EXIT_WAIT_SEC = 2.0  # time that the end of the program waits for outstanding CUDA events
_PEAK_EVERY_SEC = 1.0  # between two looks at the peak memory, which take 0.1 to 0.2 ms
_MAX_STEPS = 100_000  # steps that are written, 15 MB: a training run of weeks has more
_WRITE_EVERY_SEC = 0.1  # between two writes of steps: a killed process loses this much


def install():
    """Attaches to torch.optim.optimizer when the program imports it."""
    out = os.environ.get(_OUT)
    if not out:
        return
    recorder = Recorder(out)
    if _MODULE in sys.modules:
        recorder.attach(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _AfterImport(recorder.attach))


class _AfterImport:
    """A finder that finds nothing itself: it calls attach once the module has been executed."""

    def __init__(self, attach):
        self._attach = attach

    def find_spec(self, name, path=None, target=None):
        if name != _MODULE:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                self._follow(spec)
                return spec
        return None

    def _follow(self, spec):
        """Calls attach after the loader of spec has executed the module."""
        execute = getattr(spec.loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module):
            execute(module)
            self._attach(module)

        try:
            spec.loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader without attributes: the program runs unmeasured


def _guarded(method):
    """Makes an error in method a "fault" line."""

    @functools.wraps(method)
    def safe(self, *args, **kwargs):
        if self.dead:
            return None
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            self.fault(method.__name__, error)
            return None

    return safe


class _Engine:
    """torch's autograd engine, with a count of backward passes."""

    def __init__(self, engine, recorder):
        self._engine = engine
        self._recorder = recorder

    def run_backward(self, *args, **kwargs):
        self._recorder.backwards += 1
        return self._engine.run_backward(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self._engine, name)


class _Mark:
    """The end of an optimizer step: host clock, Unix time, and a CUDA event or None."""

    __slots__ = ("host", "unix", "event", "calls", "backwards", "number")

    def __init__(self, number):
        self.number = number
        self.calls = self.backwards = 0
        self.event = None


class Recorder:
    """Writes the steps of this process. A forked child begins anew, with a file of its own."""

    def __init__(self, out):
        self.out = out
        self._torch = None
        self._counts_backward = False
        self._base_rss = 0.0
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self):
        self.pid = os.getpid()
        self.dead = False
        self.backwards = 0  # since torch was imported
        self._file = None
        self._unwritten = ""
        self._written_at = 0.0
        self._faults = 0
        self._spent = 0.0  # CPU seconds in this hook, without its start
        self._running = None  # weak reference to the running optimizer, the outermost one if they nest
        self._inner = {}  # optimizer id -> self.backwards at its call within the running one
        self._called = {}  # optimizer id -> self.backwards at its last call in this training step
        self._open = None  # the mark of this training step
        self._closed = []  # marks of ended steps, in order, not yet written
        self._before = None  # the mark before those
        self._last_backwards = 0
        self._number = 0
        self._free = []  # CUDA events for reuse
        self._peak_at = 0.0
        self._device = "cpu"  # type of torch's device

    @_guarded
    def attach(self, optimizer):
        """Hooks all optimizers. Torch 2 has functions for that; before, Optimizer wraps the step of each class."""
        import torch

        self._torch = torch
        self._base_rss = _status("VmRSS")
        self._count_backward()
        before = getattr(optimizer, "register_optimizer_step_pre_hook", None)
        after = getattr(optimizer, "register_optimizer_step_post_hook", None)
        if before and after:
            before(lambda opt, args, kwargs: self.begin(opt))
            after(lambda opt, args, kwargs: self.end(opt))
        else:
            self._wrap_classes(optimizer.Optimizer)
        atexit.register(self.finish)

    def _wrap_classes(self, base):
        prepare = base._hook_for_profile  # called by every Optimizer.__init__

        @functools.wraps(prepare)
        def prepared(opt):
            prepare(opt)
            self._wrap(type(opt))

        base._hook_for_profile = prepared

    @_guarded
    def _wrap(self, cls):
        step = cls.step
        if getattr(step, "pacer_hook", False):
            return

        @functools.wraps(step)
        def timed(opt, *args, **kwargs):
            self.begin(opt)
            result = step(opt, *args, **kwargs)
            self.end(opt)
            return result

        timed.pacer_hook = True
        cls.step = timed

    def _count_backward(self):
        """Counts backward passes, also of programs that call the engine themselves, such as Megatron-LM."""
        variable = getattr(sys.modules.get("torch.autograd"), "Variable", None)
        engine = getattr(variable, "_execution_engine", None)
        if engine is not None and not self._counts_backward:
            variable._execution_engine = _Engine(engine, self)
            self._counts_backward = True

    @_guarded
    def begin(self, opt):
        running = self._running() if self._running is not None else None
        if running is None or running is opt:
            self._running = weakref.ref(opt)
            self._inner.clear()

    @_guarded
    def end(self, opt):
        if self._running is None or self._running() is not opt:
            # The step of an inner optimizer. If it comes again after a backward pass, the outer one has raised.
            if self._inner.setdefault(id(opt), self.backwards) == self.backwards:
                return
        self._running = None
        cuda = self._torch.cuda
        if cuda.is_initialized() and cuda.is_current_stream_capturing():
            return
        if self._file is None:
            self._start(opt)
        clock = time.thread_time()  # without the start, which no later step repeats
        self._count_backward()
        self._mark(opt)
        self._flush()
        if self._number <= _MAX_STEPS:  # per written step
            self._spent += time.thread_time() - clock

    def _mark(self, opt):
        """Adds a call to the open training step, or begins the next one."""
        last = self._called.get(id(opt))
        if last is not None and (self.backwards > last or self.backwards == 0):
            self._close()
        if self._open is None:
            self._number += 1
            self._open = _Mark(self._number)
        mark = self._open
        self._called[id(opt)] = self.backwards
        mark.calls += 1
        mark.backwards = self.backwards - self._last_backwards
        mark.host, mark.unix = time.perf_counter(), time.time()
        if self._torch.cuda.is_initialized():
            if mark.event is None:
                mark.event = self._free.pop() if self._free else self._torch.cuda.Event(enable_timing=True)
            mark.event.record()

    def _close(self):
        self._last_backwards += self._open.backwards
        self._closed.append(self._open)
        self._open = None
        self._called.clear()

    def _flush(self):
        """Writes the closed steps with completed events."""
        while self._closed:
            mark, before = self._closed[0], self._before
            if mark.event is not None and not mark.event.query():
                return
            # Formatted, since json.dumps takes four times as long.
            line = '{"event": "step", "n": %d, "end": %.6f, "calls": %d, "backwards": %d, "hook": %.6f' % (
                mark.number, mark.unix, mark.calls, mark.backwards, self._spent)
            if before is not None:
                host = sec = mark.host - before.host
                timed = mark.event is not None and before.event is not None
                if timed:
                    sec = before.event.elapsed_time(mark.event) / 1e3
                if before.event is not None:
                    self._free.append(before.event)
                line += ', "sec": %.9f, "host": %.9f, "clock": "%s"' % (sec, host, "cuda" if timed else "host")
            self._before = mark
            del self._closed[0]
            if mark.number > _MAX_STEPS:
                continue
            if mark.number & (mark.number - 1) == 0 or mark.host - self._peak_at >= _PEAK_EVERY_SEC:
                self._peak_at = mark.host
                line += ', "allocated": %.0f, "reserved": %.0f' % self._peaks()
            self._write(line + "}", mark.host)

    def _peaks(self):
        """Peak bytes in tensors and in the allocator; on CPUs, growth of the resident set and the whole; else 0, unknown."""
        cuda = self._torch.cuda
        if cuda.is_initialized():
            stats = cuda.memory_stats_as_nested_dict()  # max_memory_allocated and _reserved read, flatten and sort all, twice
            return stats["allocated_bytes"]["all"]["peak"], stats["reserved_bytes"]["all"]["peak"]
        if self._device != "cpu":
            return 0.0, 0.0
        peak = _status("VmHWM")
        return max(peak - self._base_rss, 0.0), peak

    def _start(self, opt):
        torch = self._torch
        rank, world = _rank(torch)
        self._finish_at_exit()
        name = os.path.join(self.out, "rank%d-%d.jsonl" % (rank, self.pid))
        self._file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)
        cuda = torch.cuda.is_initialized()
        parameters = [p for group in opt.param_groups for p in group["params"]]
        self._device = "cuda" if cuda else parameters[0].device.type if parameters else "cpu"
        self._write(json.dumps({
            "event": "start", "version": _VERSION, "node": os.environ.get(_NODE, ""), "pid": self.pid, "rank": rank, "world": world,
            "torch": str(torch.__version__), "cuda": torch.version.cuda or "", "python": platform.python_version(),
            "device": self._device, "device_name": torch.cuda.get_device_name() if cuda else "",
            "optimizer": type(opt).__name__, "backward_counted": self._counts_backward,
            "parameters": sum(p.numel() for p in parameters),
        }))

    def _finish_at_exit(self):
        """Calls finish before os._exit, which ends the forked children of multiprocessing without atexit."""
        leave = os._exit
        if getattr(leave, "pacer_hook", False):
            return

        @functools.wraps(leave)
        def finished(status):
            self.finish()
            leave(status)

        finished.pacer_hook = True
        os._exit = finished

    @_guarded
    def finish(self):
        """Writes the last step and the end of the program."""
        if self._file is None:
            return
        if self._open is not None:
            self._close()
        wait = time.monotonic() + _EXIT_WAIT_SEC
        self._flush()
        while self._closed and time.monotonic() < wait:
            time.sleep(0.005)
            self._flush()
        line = {"event": "end", "hook": self._spent, "unwritten": len(self._closed)}
        line["allocated"], line["reserved"] = self._peaks()
        error = getattr(sys, "last_value", None)  # what ended the program, if an exception did
        if error is not None:
            line["error"] = "%s: %s" % (type(error).__name__, str(error)[:2000])
            line["oom"] = _is_oom(error)
        self._write(json.dumps(line))
        self.dead = True

    def fault(self, where, error):
        """Writes an error of the hook. It must not raise."""
        self._faults += 1
        self._unwritten += json.dumps({"event": "fault", "where": where, "error": repr(error)[:500]}) + "\n"
        if self._faults >= _MAX_FAULTS:
            self.dead = True
        try:
            if self._file is not None:
                self._send()
        except Exception:
            self.dead = True

    def _write(self, line, now=None):
        """Writes a line; steps only once the last write was a while before now, on the host clock."""
        self._unwritten += line + "\n"
        if now is None or now - self._written_at >= _WRITE_EVERY_SEC:
            self._written_at = now or 0.0
            self._send()

    def _send(self):
        text, self._unwritten = self._unwritten.encode(), ""
        if os.write(self._file, text) != len(text):
            raise OSError("short write")


def _rank(torch):
    """Returns the rank and the number of processes, 0 and 1 without torch.distributed or a launcher."""
    dist = getattr(torch, "distributed", None)
    if dist is not None and dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return int(os.environ.get("RANK") or 0), int(os.environ.get("WORLD_SIZE") or 1)


def _status(key):
    """Returns a field of /proc/self/status in bytes, 0 where there is no /proc."""
    try:
        with open("/proc/self/status") as f:
            for line in f:
                if line.startswith(key + ":"):
                    return float(line.split()[1]) * 1024
    except OSError:
        pass
    return 0.0


def _is_oom(error):
    """Reports whether an exception says that memory ran out."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    return "out of memory" in text or "can't allocate memory" in text
