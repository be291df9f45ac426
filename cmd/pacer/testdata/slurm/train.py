"""Trains a small network with the global batch of the plan that pacer run gives.

Every process takes an equal part of the batch, whatever the plan splits: nothing else of so small
a network can be split.

train.py DIR STEPS writes DIR/steps.jsonl (a line per step), DIR/state.pt and $PACER_PROGRESS. The
samples of a step depend on its number only, so the loss does not depend on the plan. It rests
$PAUSE seconds after each step, and from half of them on ten times as long, until there is a file DIR/hurry.
"""
import time

began = time.time()  # before torch is loaded

import json
import os
import signal
import sys

import torch
import torch.distributed as dist

stop = False


def on_term(*_):
    global stop
    stop = True


signal.signal(signal.SIGTERM, on_term)
folder, steps = sys.argv[1], int(sys.argv[2])
batch = 1
for part in ("DP", "MICRO_BATCH", "ACCUM_STEPS"):
    batch *= int(os.environ["PACER_" + part])
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, processes = dist.get_rank(), dist.get_world_size()

torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).double()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
state, step = os.path.join(folder, "state.pt"), 0
if os.path.exists(state):
    kept = torch.load(state)
    net.load_state_dict(kept["net"])
    optimizer.load_state_dict(kept["optimizer"])
    step = kept["step"]


def sample(index):
    x = torch.randn(16, generator=torch.Generator().manual_seed(index)).double()
    return x, x.sin().sum()


def replace(path, write):
    write(path + ".new")
    os.replace(path + ".new", path)


def save():
    if rank > 0:
        return
    kept = dict(net=net.state_dict(), optimizer=optimizer.state_dict(), step=step)
    replace(state, lambda path: torch.save(kept, path))


while step < steps:
    pairs = [sample(step * batch + i) for i in range(rank, batch, processes)]
    x, y = torch.stack([p[0] for p in pairs]), torch.stack([p[1] for p in pairs])
    loss = ((net(x)[:, 0] - y) ** 2).sum() / batch
    loss.backward()
    for p in net.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    shared = torch.cat([loss.detach()[None], torch.tensor([float(stop)], dtype=torch.double)])
    dist.all_reduce(shared)
    if rank == 0:
        with open(os.path.join(folder, "steps.jsonl"), "a") as f:
            print(json.dumps(dict(step=step, loss=shared[0].item(), plan=os.environ["PACER_PLAN"], began=began, end=time.time())), file=f)
        replace(os.environ["PACER_PROGRESS"], lambda path: open(path, "w").write(json.dumps(dict(step=step))))
    if shared[1] > 0:
        save()
        sys.exit(0)
    if not os.path.exists(os.path.join(folder, "hurry")):
        time.sleep(float(os.environ.get("PAUSE", 0)) * (1 if 2 * step < steps else 10))
save()
