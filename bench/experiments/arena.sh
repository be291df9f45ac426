#!/usr/bin/env bash
# arena.sh: pacer against the best of 13 other policies on 40 kinds of workloads, held-out seeds; SEEDS=A-B for fewer.
. "$(dirname "$0")/lib.bash"
import rubick
"$pacer" --data "$data" fit --rows 8 --family rubick >&2
bench() { "$pacer" --data "$data" bench scheduling --cells arena --seeds "${SEEDS:-held-out}" --output "$1"; }
bench csv | sed -E 's/"[^"]*"/-/g' >"$scratch/arena.csv" # texts of errors may hold commas
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; print "| cell | best other | ratio |"; print "|---|---|---|"; next }
  $at["policy"] == "pacer" {
    printf "| `%s` | `%s` in %d of %d | %.3f (%.3f-%.3f) |\n", $at["cell"], $at["best"], $at["best_in"], $at["seeds"] + $at["failed"],
      $at["best_other.avg_jct.mean"], $at["best_other.avg_jct.lo"], $at["best_other.avg_jct.hi"]
  }' "$scratch/arena.csv" | renew arena
bench table | awk -F '  +' '$1 == "policy" { found = 1; print "| policy | JCT ratio | worst cell | best of all | p99 ratio | makespan ratio | late | failed |"; print "|---|---|---|---|---|---|---|---|"; next }
  found && NF < 2 { exit }
  found { printf "| `%s` | %s | %s | %s | %s | %s | %s | %s |\n", $1, $3, $4, $5, $6, $7, $9, $11 }' | renew arena-policies
