# ZeRO-1 as users write it: ZeroRedundancyOptimizer around Adam, and bf16 autocast.
import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--hidden", type=int, default=64)
args = parser.parse_args()

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(args.hidden, 4 * args.hidden), nn.ReLU(),
                                              nn.Linear(4 * args.hidden, 1)))
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-3)
first = last = 0.0
for step in range(args.steps):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(args.batch_size, args.hidden)).float().square().mean()
    loss.backward()
    optimizer.step()
    last = time.perf_counter()
    first = first or last
if dist.get_rank() == 0:
    print(f"mean step {(last - first) / max(args.steps - 1, 1):.9f} s")
