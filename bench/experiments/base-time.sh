#!/usr/bin/env bash
# base-time.sh: processor time of a run of Rubick's base trace on one core, start and input included.
. "$(dirname "$0")/lib.bash"
import rubick
"$pacer" --data "$data" fit --family rubick --rows 8 >/dev/null
export GOMAXPROCS=1 TIMEFORMAT=%U
for policy in fifo-backfill rubick pacer; do
  for belief in perfect fitted:rubick; do
    for _ in 1 2 3 4 5; do
      { time "$pacer" --data "$data" simulate --workload "$shared/data/rubick/simulator/workloads/workload-base.csv" --cluster 8x8xA800 \
        --policy "$policy" --truth rubick:measured --belief "$belief" --output csv 2>"$scratch/log" >"$scratch/run.csv"; } 2>&1 ||
        { cat "$scratch/log" >&2; exit 1; }
    done | awk -v policy="$policy" -v belief="$belief" "$interval"'
      { n++; s += $1; q += $1 * $1 }
      END { printf "| %s | %s | %.2f ± %.2f s |\n", policy, belief, s / n, half(n, s, q) }'
  done
done >"$scratch/rows.md"
{ echo "| policy | belief | processor time |"; echo "|---|---|---|"; cat "$scratch/rows.md"; } | renew base-time
awk -F' *([|]|±) *' '{ gsub(/ s/, "", $5); printf "\"%s, %s\",%s,%s,\n", $2, $3, $4, $5 }' "$scratch/rows.md" |
  go run ./bench/bars "Rubick's base trace, one core" "s of processor time" >docs/benchmarks/base-time.svg
