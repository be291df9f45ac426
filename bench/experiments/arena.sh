#!/usr/bin/env bash
# arena.sh: 40 kinds of workloads x 12 policies, compared in pairs on held-out seeds; windows of recorded traces. SEEDS=A-B for fewer.
. "$(dirname "$0")/lib.bash"
import rubick
"$pacer" --data "$data" fit --rows 8 --family rubick >&2
"$pacer" --data "$data" bench scheduling --cells arena --seeds "${SEEDS:-held-out}" --output csv >"$scratch/arena.csv"
"$pacer" --data "$data" bench scheduling --cells traces --shared "$shared" --seeds 1 --output csv >"$scratch/traces.csv"
mv "$scratch/arena.csv" bench/results/arena.csv
mv "$scratch/traces.csv" bench/results/arena-traces.csv
