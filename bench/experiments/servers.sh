#!/usr/bin/env bash
# servers.sh: jobs with parameter servers: workloads of DL2 under drf, fifo, srtf, tetris and Optimus.
. "$(dirname "$0")/lib.bash"

import dl2

# run NODES START_COST prints a line per trace and policy: policy, average JCT in hours, makespan in
# hours, restarts a job, device-hours. What Optimus does with a belief fitted to 8 points of
# each model and to what it sees of running jobs is called "optimus, fitted".
run() {
  for arrivals in Google_Trace Poisson Uniform; do
    for trace in 0 1 2 3 4 5 6 7 8 9; do
      sim() {
        "$pacer" --data "$data" simulate --workload "$shared/baselines/dl2/jobs.csv:dl2=small-e3000-$arrivals-real/$trace" \
          --cluster "$1x2xGTX1080Ti/8cpus" --start-cost "$2" --round 1200 --truth "dl2:$shared/data/dl2" --output csv "${@:3}" 2>>"$scratch/log"
      }
      sim "$1" "$2" --policy drf,fifo,srtf,tetris,optimus-oracle
      sim "$1" "$2" --policy optimus --belief online:optimus | sed 's/^optimus,/"optimus fitted",/; s/^optimus \[perfect\],/optimus,/'
    done
  done | awk -F, '$1 != "policy" { gsub(/"/, "", $1); print $1 "," $6 / 3600 "," $9 / 3600 "," $11 / $2 "," $10 "," $3 / $2 }'
}

# table turns those into means over traces, with the 95 % interval of the difference from drf, trace by
# trace, as a share of the mean of drf.
table() {
  awk -F, "$interval"'
    !($1 in n) { order[++policies] = $1 }
    { k = n[$1]++; jct[$1, k] = $2; sum[$1] += $2; span[$1] += $3; moved[$1] += $4; held[$1] += $5; done[$1] += $6 }
    END {
      print "| policy | average JCT | difference from drf | makespan | restarts per job | device-hours | finished |"
      print "|---|---|---|---|---|---|---|"
      base = sum["drf"] / n["drf"]
      for (i = 1; i <= policies; i++) {
        p = order[i]; total = 0; square = 0
        for (k = 0; k < n[p]; k++) { d = jct[p, k] - jct["drf", k]; total += d; square += d * d }
        beside = p == "drf" ? "-" : sprintf("%+.1f ± %.1f %%", 100 * total / n[p] / base, 100 * half(n[p], total, square) / base)
        printf "| `%s` | %.3f h | %s | %.2f h | %.2f | %.0f | %.0f %% |\n", p, sum[p] / n[p], beside, span[p] / n[p], moved[p] / n[p], held[p] / n[p], 100 * done[p] / n[p]
      }
    }'
}

run 48 0 | table | renew servers-48-free
run 48 60 | table | renew servers-48-60s
run 12 60 | table | renew servers-12-60s
