#!/usr/bin/env bash
# ones.sh: ONES against tiresias, optimus, dl2, pacer and sia, over eight workloads of Pollux's artifact.
. "$(dirname "$0")/lib.bash"
POLLUX=$shared/data/pollux bench/studies/pollux-draw.sh 101 >"$scratch/drawn.csv"
rival "$scratch/drawn.csv:pollux"
study ones
