"""Micro-benchmarks of the devices: the parts of a training step alone, and collectives of two ranks.

Each row has an operation, its sizes and the seconds of each repetition. The rows of all
operations take turns until the time is spent, so that a burst of other load falls on a
few repetitions of every row and leaves the medians alone.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any, Callable

import torch
import torch.distributed as dist
from torch import Tensor

from pacer_worker import engine
from pacer_worker.collectives import Group
from pacer_worker.config import Config, Model, Plan
from pacer_worker.models_attention import Rotary, attend
from pacer_worker.models_decoder import GPT, LLAMA, Logits
from pacer_worker.models_layers import Layer
from pacer_worker.models_site import Site
from pacer_worker.optimizer import Settings, adamw
from pacer_worker.phases import Phases, no_clock
from pacer_worker.precision import Precision, lack
from pacer_worker.process import Process
from pacer_worker.recompute import Recompute
from pacer_worker.tensor_parallel import TensorParallel

Run = Callable[[], object]


@dataclass
class Case:
    """One operation: its row without the times, and a function that does it."""

    row: dict[str, Any]
    run: Run
    precision: Precision | None = None  # of its matrix products
    parts: int = 1  # equal operations in one run
    kernels: bool = False  # the row is the time of the device's work, without the host that starts it

    def use(self) -> None:
        """Sets the options of torch for the runs that follow."""
        if self.precision is not None:
            self.precision.use()

    def once(self) -> None:
        if self.precision is None:
            self.run()
            return
        with self.precision.autocast():  # anew, since it keeps the weights that it converts
            self.run()


MIN_REPEATS, MAX_REPEATS = 5, 40
MIN_TIMED = 1e-3  # seconds of one repetition; shorter operations run several times
SLOWEST = 100  # an operation that takes more than the time over SLOWEST is left out, but for its first sizes


class Scale:
    """Sizes that take a CPU core milliseconds, or a GPU that long."""

    def __init__(self, cuda: bool) -> None:
        self.widths = (1024, 2048, 4096, 8192) if cuda else (64, 128, 256, 512)
        self.tokens = (512, 2048, 8192) if cuda else (64, 256, 1024)
        self.sequence = (512, 1024, 2048, 4096) if cuda else (64, 128, 256)
        self.head = 128 if cuda else 32
        self.vocabulary = 32768 if cuda else 2048
        self.parameters = (1 << 24, 1 << 27) if cuda else (1 << 20, 1 << 22)
        self.bytes = (1 << 27, 1 << 29) if cuda else (1 << 24, 1 << 26)
        self.messages = (1 << 12, 1 << 16, 1 << 20, 1 << 23)
        self.formats = ("bf16", "fp16", "tf32", "fp32") if cuda else ("fp32",)


def measure(process: Process, seconds: float) -> dict[str, Any]:
    """Returns the rows: those of one device if the process is alone, else those of collectives."""
    scale = Scale(process.device.type == "cuda")
    torch.manual_seed(0)
    cases = collectives(process, scale) if process.world > 1 else alone(process.device, scale)
    timer = Timer(process)
    begin = time.perf_counter()
    rows: list[dict[str, Any]] = []
    turns: list[tuple[Case, int]] = []
    for case in cases:
        try:
            once = min(timer.wall(case, 1) for _ in range(2))  # the first run loads and allocates
        except RuntimeError as err:
            if "out of memory" in str(err).lower():
                continue
            raise
        if once < seconds / SLOWEST or all(case.row["op"] != other["op"] for other in rows):
            rows.append({**case.row, "sec": []})
            turns.append((case, max(1, round(MIN_TIMED / max(once, 1e-7)))))
    for turn in range(MAX_REPEATS):
        spent = process.largest([time.perf_counter() - begin])[0]
        if turn >= MIN_REPEATS and spent * (turn + 2) / (turn + 1) > seconds:
            break
        for row, (case, n) in zip(rows, turns):
            row["sec"].append(timer.sec(case, n) / case.parts)
    return {"rows": rows, "torch": str(torch.__version__)}


class Timer:
    """Times runs of a case: by the host's clock, or the device's part alone."""

    HOLD = 1 << 26  # numbers in the copy that keeps the device busy

    def __init__(self, process: Process) -> None:
        self.process = process
        self.held: list[Tensor] = []  # the device copies one to the other
        if process.device.type == "cuda" and process.world == 1:
            self.held = [torch.zeros(self.HOLD, device=process.device) for _ in range(2)]
            self.hold_sec = min(self.wall(Case({}, self._hold), 4) for _ in range(3))

    def sec(self, case: Case, n: int) -> float:
        """Returns the seconds of one of n runs."""
        return self.device(case, n) if case.kernels and self.held else self.wall(case, n)

    def wall(self, case: Case, n: int) -> float:
        """Returns the seconds by the host's clock, until the device has finished; the largest over the ranks."""
        self.process.largest([0.0])  # a barrier
        case.use()
        self.process.synchronize()
        begin = time.perf_counter()
        for _ in range(n):
            case.once()
        self.process.synchronize()
        return self.process.largest([(time.perf_counter() - begin) / n])[0]

    def device(self, case: Case, n: int) -> float:
        """Returns the device's seconds: it is kept busy until the host has started all runs, and never waits for it."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        case.use()
        self.process.synchronize()
        started = time.perf_counter()
        case.once()
        host = time.perf_counter() - started
        for _ in range(math.ceil(2 * n * host / self.hold_sec)):
            self._hold()
        begin.record()
        for _ in range(n):
            case.once()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / n

    def _hold(self) -> None:
        self.held[0].copy_(self.held[1])


def alone(device: torch.device, scale: Scale) -> list[Case]:
    cases: list[Case] = []
    for name in scale.formats:
        if not lack(name, device):
            cases += multiplications(Precision(name, device), scale)
    precision = Precision("", device)
    cases += [*attention(precision, scale), *layers(precision, scale), *heads(precision, scale)]
    cases += [*updates(device, scale), *streams(device, scale), smallest(device)]
    return cases


def multiplications(precision: Precision, scale: Scale) -> list[Case]:
    """The three multiplications of linear layers and of their shards: forward, dgrad, wgrad."""
    w, cases = scale.widths, []
    odd = w[1] + 32  # no multiple of 64, as in small models and in shards of others
    shapes = [(w[1], w[1]), (w[1], w[3]), (w[2], w[0]), (w[2], w[2]), (w[3], w[1]), (odd, w[2]), (w[2], odd)]
    sizes = (max(scale.tokens) * w[3], w[3] * w[3], max(scale.tokens) * w[3])
    xs, weights, grads = (torch.randn(n, device=precision.device, dtype=precision.dtype) for n in sizes)
    for tokens in scale.tokens:
        for inputs, outputs in shapes:
            x = xs[: tokens * inputs].view(tokens, inputs)
            weight = weights[: outputs * inputs].view(outputs, inputs)
            grad = grads[: tokens * outputs].view(tokens, outputs)
            row = {"precision": precision.name, "rows": tokens, "cols": outputs, "depth": inputs}
            for op, run in (
                ("forward", lambda x=x, weight=weight: x @ weight.t()),
                ("dgrad", lambda grad=grad, weight=weight: grad @ weight),
                ("wgrad", lambda grad=grad, x=x: grad.t() @ x),
            ):
                cases.append(Case({"op": f"gemm {op}", **row}, run, precision, kernels=True))
    return cases


def attention(precision: Precision, scale: Scale) -> list[Case]:
    """The attention core, forward and backward, causal, by the kernel that the worker's models use."""
    cases = []
    for sequence in scale.sequence:
        heads = scale.widths[2] // scale.head
        for batch in (1, 4):
            q, k, v = (
                torch.randn(
                    batch, heads, sequence, scale.head, device=precision.device, dtype=precision.dtype
                ).requires_grad_()
                for _ in range(3)
            )
            model = Model(kind="decoder", layers=1, hidden=scale.widths[2], heads=heads, seq_len=sequence)
            run = _trained(lambda q=q, k=k, v=v: attend(q, k, v, None, True), (q, k, v))
            cases.append(Case(_of(model, "attention", precision, batch), run, precision, kernels=True))
    return cases


def layers(precision: Precision, scale: Scale) -> list[Case]:
    """Transformer layers, forward and backward, from some that wait for the host to one that keeps it waiting.

    Where the host matters there are several in a row, as in a network: each pass wakes threads of torch once.
    """
    cases = []
    site = _site(precision)
    for hidden, sequence, batch, depth in (
        (scale.head, 8, 1, 4),
        (scale.widths[1], scale.sequence[0], 1, 4),
        (scale.widths[1], scale.sequence[1], 4, 1),
        (scale.widths[2], scale.sequence[1], 1, 1),
        (scale.widths[2], scale.sequence[2], 2, 1),
    ):
        for style in (GPT, LLAMA):
            inner = hidden * 8 // 3 // 32 * 32 if style.gated else hidden * 4
            heads = max(hidden // scale.head, 1)
            model = Model(
                kind="decoder", layers=1, hidden=hidden, ffn=inner, heads=heads, seq_len=sequence, gated_mlp=style.gated
            )
            stack = torch.nn.ModuleList(Layer(site, f"layer_{i}", model, style) for i in range(depth))
            _fill(stack)
            x = torch.randn(batch, sequence, hidden, device=site.compute, dtype=site.dtype).requires_grad_()
            tables = {"rotary": Rotary(site, sequence, model.head)()} if style.rotary else {}
            run = _trained(lambda stack=stack, x=x, tables=tables: _through(stack, x, tables), (x, *stack.parameters()))
            cases.append(Case(_of(model, "layer", precision, batch), run, precision, parts=depth))
    return cases


def heads(precision: Precision, scale: Scale) -> list[Case]:
    """The logits and the loss of them, forward and backward."""
    cases = []
    site = _site(precision)
    for batch in (1, 4):
        hidden, sequence, vocab = scale.widths[1], scale.sequence[1], scale.vocabulary
        head = Logits(site, "head", vocab, hidden)
        _fill(head)
        x = torch.randn(batch, sequence, hidden, device=site.compute, dtype=site.dtype).requires_grad_()
        labels = torch.randint(0, vocab, (batch, sequence), device=site.compute)
        model = Model(kind="decoder", layers=1, hidden=hidden, ffn=hidden, heads=1, vocab=vocab, seq_len=sequence)
        inputs = (x, *head.parameters())
        run = _trained(lambda head=head, x=x, labels=labels: head(x, labels).mean(), inputs)
        cases.append(Case(_of(model, "head", precision, batch), run, precision, kernels=True))
    return cases


def updates(device: torch.device, scale: Scale) -> list[Case]:
    """AdamW over fp32 parameters in tensors like those of a layer, and the sum of two gradients."""
    cases: list[Case] = []
    for n in scale.parameters:
        tensors = [torch.nn.Parameter(torch.zeros(n // 8, device=device)) for _ in range(8)]
        for p in tensors:
            p.grad = torch.full_like(p, 1e-3)
        optimizer = adamw(tensors, **Settings().kwargs())
        cases.append(Case({"op": "optimizer", "parameters": n}, optimizer.step, kernels=True))
        a, b = torch.zeros(n, device=device), torch.ones(n, device=device)
        cases.append(Case({"op": "accumulate", "parameters": n}, lambda a=a, b=b: a.add_(b), kernels=True))
    return cases


def streams(device: torch.device, scale: Scale) -> list[Case]:
    """A copy: bytes are those read and written."""
    cases = []
    for n in scale.bytes:
        a, b = torch.zeros(n // 8, device=device), torch.zeros(n // 8, device=device)
        cases.append(Case({"op": "copy", "bytes": n}, lambda a=a, b=b: a.copy_(b), kernels=True))
    return cases


def smallest(device: torch.device) -> Case:
    """A whole step of a network without work: what a step takes besides its layers."""
    model = Model(kind="decoder", layers=1, hidden=16, ffn=16, heads=1, vocab=64, seq_len=8, tied_embeddings=True)
    made = engine.build({"model": asdict(model), "plan": {"mb": 1}, "seq_len": 8}, device, {})
    row = {"op": "step", "model": _shape(model), "micro_batch": 1, "precision": made.precision.name}
    return Case(row, lambda: made.step(no_clock))


def collectives(process: Process, scale: Scale) -> list[Case]:
    """All-reduces, all-gathers and transfers to the next rank; bytes are those at each rank."""
    group = Group(range(process.world), process.rank, dist.group.WORLD, Phases())
    cases: list[Case] = []
    for n in scale.messages:
        x = torch.zeros(n // 4, device=process.device)
        row = {"ranks": process.world, "bytes": n}
        cases.append(Case({"op": "all-reduce", **row}, lambda x=x: group.all_reduce(x)))
        cases.append(Case({"op": "send", **row}, lambda x=x: _send(process, x)))
        share = torch.zeros(n // 4 // process.world, device=process.device)
        cases.append(Case({"op": "all-gather", **row}, lambda share=share: group.all_gather(share, 0)))
    return cases


def _send(process: Process, x: Tensor) -> None:
    if process.rank == 0:
        dist.send(x, 1)
    elif process.rank == 1:
        dist.recv(x, 0)


def _through(stack: torch.nn.ModuleList, x: Tensor, tables: dict[str, Tensor]) -> Tensor:
    for layer in stack:
        (x,) = layer((x,), tables)
    return x


def _trained(forward: Callable[[], Tensor], inputs: tuple[Tensor, ...]) -> Run:
    """Returns forward followed by the backward pass to inputs."""

    def run() -> None:
        y = forward()
        torch.autograd.grad(y, inputs, torch.ones_like(y))

    return run


def _site(precision: Precision) -> Site:
    tp = TensorParallel(Group([0], 0, None, Phases()), False)
    return Site(precision.device, precision.device, precision.dtype, tp, Recompute("none"))


def _fill(module: torch.nn.Module) -> None:
    with torch.no_grad():
        for p in module.parameters():
            p.normal_(0, 0.02)


def _of(model: Model, op: str, precision: Precision, batch: int) -> dict[str, Any]:
    return {"op": op, "model": _shape(model), "micro_batch": batch, "precision": precision.name}


def _shape(model: Model) -> dict[str, Any]:
    return {key: value for key, value in asdict(model).items() if value}
