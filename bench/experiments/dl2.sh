#!/usr/bin/env bash
# dl2.sh: DL2 with parameter servers, trained on other workloads, against DRF and Optimus.
#
# Policies are trained once and kept in DATA; three minutes of CPU, then one for the traces.
. "$(dirname "$0")/lib.bash"
world=(--cluster 48x2xGTX1080Ti/8cpus --truth "dl2:$shared/data/dl2" --round 1200)
learn=(--workload synthetic:dl2=small "${world[@]}" --set hidden=128,validation=6,explore=0)
mkdir -p "$data"
cd "$data"

# train NAME FLAGS... trains a policy, once.
train() {
  [[ -s $1.bin ]] || { "$pacer" learn dl2 "${learn[@]}" "${@:2}" --out "$scratch/$1.bin" >&2 && mv "$scratch/$1.bin" .; }
}
for seed in 1 2 3; do
  train "dl2-copy-$seed" --seed "$seed" --teacher drf --set iterations=0
done
train dl2-drf --teacher drf --set iterations=16,episodes=4,validate=2,own-rate=0.002,discount=0.95,lambda=0.9,reward=per-action
train dl2-imitation --teacher optimus-oracle --set updates=200,iterations=0
train dl2-paper --teacher optimus-oracle --set updates=200,iterations=0,state=paper
import dl2
copies=dl2:model=dl2-copy-1.bin,dl2:model=dl2-copy-2.bin,dl2:model=dl2-copy-3.bin
students=dl2:model=dl2-imitation.bin,dl2:model=dl2-drf.bin,dl2:model=dl2-paper.bin

# For each trace: policies that know the speeds, then those that fit them to 8 points of
# each model and to running jobs.
for config in small-e3000-{Uniform,Poisson,Google_Trace}-real; do
  for trace in {0..9}; do
    sim() {
      "$pacer" --data "$data" simulate --workload "$shared/baselines/dl2/jobs.csv:dl2=$config/$trace" "${world[@]}" --output csv "$@" 2>"$scratch/log" ||
        { cat "$scratch/log" >&2; exit 1; }
    }
    { sim --policy "drf,$copies,optimus-oracle,$students" | sed 's/^/told,/'; sim --belief online:optimus --policy "optimus,$students" | grep -v perfect | sed 's/^/fitted,/'; } |
      sed "s|^|$config/$trace,|"
  done
done >"$scratch/rows.csv"
cd "$root"
awk -F, "$interval"'
  BEGIN {
    print "| policy | speeds | mean JCT | difference from drf | difference from optimus, speeds fitted |"; print "|---|---|---|---|---|" }
  $3 == "policy" { for (i = 1; i <= NF; i++) if ($i == "avg_jct_s") column = i; next }
  { name = $3; sub(/dl2:model=/, "", name); sub(/\.bin/, "", name); key = $2 "," name; if (!(key in sum)) order[++n] = key
    jct[key, $1] = $column; sum[key] += $column; traces[$1] }
  # beside writes the difference of the means, with its 95 % interval trace by trace, as a share.
  function beside(key, other,   t, d, total, square, base) {
    if (key == other) return "-"
    base = sum[other] / runs
    for (t in traces) { d = jct[key, t] - jct[other, t]; total += d; square += d * d }
    return sprintf("%+.1f ± %.1f %%", 100 * total / runs / base, 100 / base * half(runs, total, square))
  }
  END {
    for (t in traces) runs++
    for (k = 1; k <= n; k++) {
      split(order[k], part, ",")
      printf "| `%s` | %s | %.3f h | %s | %s |\n", part[2], part[1], sum[order[k]] / runs / 3600, beside(order[k], "told,drf"), beside(order[k], "fitted,optimus")
    }
  }' "$scratch/rows.csv" >"$scratch/table.md"
renew dl2 <"$scratch/table.md"
awk -F' *[|] *' '/%/ && $4 + 0 > 0 { half = $5; sub(/^.*± /, "", half); sub(/ %/, "", half); sub(/ .*/, "", $5); gsub("`", "", $2); printf "\"%s, speeds %s\",%.1f,%.1f,\n", $2, $3, 100 + $5, half }' "$scratch/table.md" |
  go run ./bench/bars "30 traces of DL2: mean JCT against drf" "% of drf" >docs/benchmarks/dl2.svg
