#!/usr/bin/env bash
# mixed.sh: pacer against four other policies on a cluster of three types of device, held-out seeds; SEEDS=A-B for fewer.
. "$(dirname "$0")/lib.bash"
"$pacer" --data "$data" bench scheduling --cells mixed --policies pacer,rubick,optimus,elasticflow,sia --seeds "${SEEDS:-held-out}" --output csv |
  sed -E 's/"[^"]*"/-/g' |
  awk -F, 'function ratio(of) { return sprintf("%.3f (%.3f-%.3f)", $at["best_other." of ".mean"], $at["best_other." of ".lo"], $at["best_other." of ".hi"]) }
  NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; print "| cell | best other | average JCT | p99 | makespan |"; print "|---|---|---|---|---|"; next }
  $at["policy"] == "pacer" {
    printf "| `%s` | `%s` in %d of %d | %s | %s | %s |\n", $at["cell"], $at["best"], $at["best_in"], $at["seeds"] + $at["failed"], ratio("avg_jct"), ratio("p99_jct"), ratio("makespan")
  }' | renew mixed
