# A training script as users write them: one process, gradient accumulation by the division of the loss.
import argparse
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--seq", type=int, default=16)
parser.add_argument("--hidden", type=int, default=64)
parser.add_argument("--least-sec", type=float, default=0.0, help="multiply matrices until a step has taken this long")
parser.add_argument("--out-of-memory", action="store_true")
args = parser.parse_args()

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(100, args.hidden), nn.Linear(args.hidden, 4 * args.hidden), nn.GELU(),
                      nn.Linear(4 * args.hidden, 100))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
first = last = 0.0
work = torch.ones(256, 256)
for step in range(args.steps):
    for _ in range(args.accumulate):
        tokens = torch.randint(100, (args.batch_size, args.seq))
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()) / args.accumulate
        loss.backward()
    until = last + args.least_sec
    while last and time.perf_counter() < until:
        work = (work @ work).tanh()
    if args.out_of_memory and step == 2:
        torch.empty(1 << 50)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    last = time.perf_counter()
    first = first or last
print(f"loss {loss.item():.3f}, mean step {(last - first) / max(args.steps - 1, 1):.9f} s")
