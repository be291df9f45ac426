# Training that prints the log of a framework, in the shape of its lines, for steps that it times itself.
import argparse
import sys
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("style", choices=["megatron", "torchtitan", "trainer"])
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--seq", type=int, default=16)
parser.add_argument("--hidden", type=int, default=512)
parser.add_argument("--every", type=int, default=2)
args = parser.parse_args()

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(args.hidden, 4 * args.hidden), nn.GELU(), nn.Linear(4 * args.hidden, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
if args.style == "torchtitan":
    print(f"[rank0]:[titan] 2025-05-28 21:11:37,626 - root - INFO - Trainer is initialized with local batch size "
          f"{args.batch_size}, global batch size {args.batch_size}, gradient accumulation steps 1, sequence length "
          f"{args.seq}, total steps {args.steps} (warmup 2).", flush=True)
if args.style == "trainer":
    print(f"  Total train batch size (w. parallel, distributed & accumulation) = {args.batch_size}")
    print(f"  Total optimization steps = {args.steps}", flush=True)
begin = last = time.perf_counter()
smoothed = weights = 0.0  # of tqdm's rate, which is none of the last interval
for step in range(1, args.steps + 1):
    loss = model(torch.randn(args.batch_size * args.seq, args.hidden)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % args.every:
        continue
    now = time.perf_counter()
    sec, last = (now - last) / args.every, now
    if args.style == "megatron":
        print(f" iteration {step:8d}/{args.steps:8d} | consumed samples: {step * args.batch_size:12d} | elapsed time per "
              f"iteration (ms): {1e3 * sec:.1f} | learning rate: 1.000E-03 | global batch size: {args.batch_size:5d} | "
              f"lm loss: {loss.item():.6E} |", flush=True)
    elif args.style == "torchtitan":
        print(f"[rank0]:[titan] 2025-05-28 21:11:40,626 - root - INFO - \x1b[31mstep: {step:2d}  \x1b[32mloss: "
              f"{loss.item():7.4f}  \x1b[33mmemory:  1.50GiB(1.88%)  \x1b[34mtps: "
              f"{round(args.batch_size * args.seq / sec):,}  \x1b[36mtflops: 0.02\x1b[39m", flush=True)
    else:
        smoothed, weights = 0.3 * sec + 0.7 * smoothed, 0.3 + 0.7 * weights
        rate = weights / smoothed
        sys.stderr.write(f"\r {100 * step // args.steps:3d}%|####      | {step}/{args.steps} "
                         f"[00:{int(now - begin):02d}<00:00, " + (f"{rate:5.2f}it/s]" if rate > 1 else f"{1 / rate:5.2f}s/it]"))
        sys.stderr.flush()
if args.style == "trainer":
    print(f"\n{{'train_runtime': {last - begin:.4f}, 'train_steps_per_second': {args.steps / (last - begin):.3f}}}")
