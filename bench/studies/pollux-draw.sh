#!/usr/bin/env bash
# pollux-draw.sh SEED prints a workload like those of Pollux's simulator: 160 jobs in 8
# hours, each drawn from those of its eight workloads at twice the load, and as often
# in every hour as there. Equal seeds draw equal jobs.
#
# POLLUX is the directory with workloads-2.0/ of petuum/adaptdl, branch
# osdi21-artifact, directory simulator.
set -euo pipefail
: "${POLLUX:?the directory of workloads-2.0/ of the simulator of petuum/adaptdl, branch osdi21-artifact}"
awk -F, -v OFS=, -v seed="${1:?SEED}" '
  # random is that of Park and Miller, "Random number generators: good ones are hard to
  # find", CACM 1988: exact in double precision. Every seed has a part of its own.
  function random() { state = state * 16807 % 2147483647; return state / 2147483647 }
  BEGIN { n = 0; state = 1; for (i = 0; i < 1000 * (seed + 1); i++) random(); print "name,time,application,num_replicas,batch_size" }
  FNR > 1 { at[n] = $2; job[n] = $3 "," $4 "," $5; n++ }
  END {
    for (i = 0; i < 160; i++) {
      t = int(at[int(random() * n)] + 600 * random())
      kind = job[int(random() * n)]
      app = kind; sub(/,.*/, "", app)
      print app "-" i, t, kind | "sort -t, -k2,2n -k1,1"
    }
  }' "$POLLUX"/workloads-2.0/workload-{1,2,3,4,5,6,7,8}.csv
