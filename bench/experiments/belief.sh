#!/usr/bin/env bash
# belief.sh: what wrong speeds cost pacer and rubick on generated workloads, held-out seeds; SEEDS=A-B for fewer.
. "$(dirname "$0")/lib.bash"
import rubick
"$pacer" --data "$data" fit --rows 8 --family rubick >&2
"$pacer" --data "$data" bench scheduling --cells belief --policies pacer,rubick --seeds "${SEEDS:-held-out}" --output csv |
  awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; print "| cell | pacer | rubick |"; print "|---|---|---|"; next }
  $at["variant_of"] == "" { next }
  { ratio[$at["policy"]] = sprintf("%.3f (%.3f-%.3f)", $at["of_reference.avg_jct.mean"], $at["of_reference.avg_jct.lo"], $at["of_reference.avg_jct.hi"]) }
  $at["policy"] == "rubick" { printf "| `%s` | %s | %s |\n", $at["cell"], ratio["pacer"], ratio["rubick"] }' | renew belief
