# Data parallel training as users write it: DistributedDataParallel, and no_sync while gradients accumulate.
import argparse
import contextlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--accumulate", type=int, default=2)
parser.add_argument("--hidden", type=int, default=64)
args = parser.parse_args()

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(args.hidden, 4 * args.hidden), nn.GELU(),
                                              nn.Linear(4 * args.hidden, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
first = last = 0.0
for step in range(args.steps):
    for i in range(args.accumulate):
        sync = contextlib.nullcontext() if i == args.accumulate - 1 else model.no_sync()
        with sync:
            model(torch.randn(args.batch_size, args.hidden)).square().mean().backward()
    optimizer.step()
    last = time.perf_counter()
    first = first or last
    optimizer.zero_grad()
if dist.get_rank() == 0:
    print(f"mean step {(last - first) / max(args.steps - 1, 1):.9f} s")
