# Orders in which programs call optimizers. Each runs in a forked child and prints its name and process id.
import os
import sys

import torch

torch.set_num_threads(1)
STEPS = 4


def layer():
    return torch.nn.Linear(4, 1)


def backward(*layers):
    sum(l(torch.ones(2, 4)).square().mean() for l in layers).backward()


def two_optimizers():  # a generator and a discriminator, each with a backward pass of its own
    a, b = layer(), layer()
    first, second = torch.optim.SGD(a.parameters(), lr=1e-3), torch.optim.Adam(b.parameters())
    for _ in range(STEPS):
        backward(a)
        first.step()
        backward(b)
        second.step()


def parts():  # one optimizer per model part, stepped together
    layers = [layer() for _ in range(3)]
    optimizers = [torch.optim.SGD(l.parameters(), lr=1e-3) for l in layers]
    for _ in range(STEPS):
        backward(*layers)
        for o in optimizers:
            o.step()


def groups():  # one call per group of parameters after one backward pass, as DeepSpeed does
    a = layer()
    o = torch.optim.SGD(a.parameters(), lr=1e-3)
    for _ in range(STEPS):
        backward(a)
        for _ in range(3):
            o.step()


def engine():  # a program that calls the engine itself
    a = layer()
    o = torch.optim.SGD(a.parameters(), lr=1e-3)
    for _ in range(STEPS):
        loss = a(torch.ones(2, 4)).square().mean()
        torch.autograd.Variable._execution_engine.run_backward((loss,), (torch.ones(()),), False, False, (),
                                                               allow_unreachable=True, accumulate_grad=True)
        o.step()


def subclass():  # step of an optimizer calls that of its base class; an optimizer is around another
    class Mine(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    a = layer()
    o = Mine(a.parameters(), lr=1e-3)
    for _ in range(STEPS):
        backward(a)
        o.step()


def closure():  # the backward pass happens within the step
    a = layer()
    o = torch.optim.Adam(a.parameters())

    def evaluate():
        o.zero_grad()
        loss = a(torch.ones(2, 4)).square().mean()
        loss.backward()
        return loss

    for _ in range(STEPS):
        o.step(evaluate)


def raises():  # a step that fails, and is tried again
    class Fails(torch.optim.SGD):
        failed = False

        def step(self, closure=None):
            if not self.failed:
                self.failed = True
                raise RuntimeError("once")
            return super().step(closure)

    a = layer()
    o = Fails(a.parameters(), lr=1e-3)
    for _ in range(STEPS + 1):
        backward(a)
        try:
            o.step()
        except RuntimeError:
            pass


def other_raises():  # one optimizer fails, and training goes on with another one: its first step is not seen
    class Fails(torch.optim.SGD):
        def step(self, closure=None):
            raise RuntimeError("always")

    a = layer()
    fails, o = Fails(a.parameters(), lr=1e-3), torch.optim.SGD(a.parameters(), lr=1e-3)
    backward(a)
    try:
        fails.step()
    except RuntimeError:
        pass
    for _ in range(STEPS + 1):
        backward(a)
        o.step()


def leaves():  # ends as the forked children of multiprocessing do, without functions of atexit
    a = layer()
    o = torch.optim.SGD(a.parameters(), lr=1e-3)
    for _ in range(STEPS):
        backward(a)
        o.step()
    os._exit(0)


def many():  # more steps than are written
    import pacer_hook

    pacer_hook._MAX_STEPS = STEPS
    a = layer()
    o = torch.optim.SGD(a.parameters(), lr=1e-3)
    for _ in range(2 * STEPS):
        backward(a)
        o.step()


def elsewhere():  # on a device with neither CUDA nor the memory of the host
    a = torch.nn.Linear(4, 1, device="meta")
    o = torch.optim.SGD(a.parameters(), lr=1e-3)
    for _ in range(STEPS):
        a(torch.ones(2, 4, device="meta")).square().mean().backward()
        o.step()


for pattern in (two_optimizers, parts, groups, engine, subclass, closure, raises, other_raises, leaves, many, elsewhere):
    pid = os.fork()
    if pid == 0:
        pattern()
        sys.exit()
    os.waitpid(pid, 0)
    print(pattern.__name__, pid, flush=True)
