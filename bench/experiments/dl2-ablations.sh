#!/usr/bin/env bash
# dl2-ablations.sh: DL2 without each of its parts, and with the network of the paper.
#
# Three trainings of each, kept in DATA; about eight minutes of CPU. All are evaluated on
# six workloads that were used neither to train nor to select any of them.
. "$(dirname "$0")/lib.bash"
world=(--cluster 48x2xGTX1080Ti/8cpus --truth "dl2:$shared/data/dl2" --round 1200)
teach=updates=100,iterations=0
reward=updates=0,iterations=12,episodes=4,validate=4,own-rate=0.002,discount=0.95,lambda=0.9,reward=per-action,explore=0
seeds=(1 2 3)
mkdir -p "$data"
cd "$data"

# settings SETTINGS... joins settings KEY=VALUE,...; of a key that is there twice the last counts.
settings() { tr ' ,' '\n\n' <<<"$*" | awk -F= 'NF { last[$1] = $0 } END { for (k in last) printf "%s%s", n++ ? "," : "", last[k] }'; }

# train NAME SEED SETTINGS FLAG... trains a policy, once.
train() {
  local out=ablation-$1-$2.bin
  [[ -s $out ]] || { "$pacer" learn dl2 --workload synthetic:dl2=small "${world[@]}" --seed "$2" --set "$(settings hidden=64,validation=3 "$3")" "${@:4}" --out "$scratch/$out" >&2 && mv "$scratch/$out" .; }
}

# part NAME SEED [SETTINGS] trains a copy of the teacher further, otherwise than DL2 does.
part() { train "$1" "$2" "$reward ${3-}" --from "ablation-copy-$2.bin"; }

names=(DL2 copy no-teacher progress waiting no-value helped no-replay sure paper dense-copy dense)
declare -A what=(
  [DL2]="all parts" [copy]="from the teacher alone" [no-teacher]="by reward alone" [progress]="rewarded for the progress of all jobs in a slot"
  [waiting]="rewarded for the time all jobs wait" [no-value]="no value network" [helped]="help for lopsided jobs (\`explore=0.4\`)" [no-replay]="no replay"
  [sure]="copy not softened before reward (\`soften=1\`)" [paper]="state without speeds"
  [dense-copy]="network of the paper, from the teacher alone" [dense]="network of the paper, all parts")
for seed in "${seeds[@]}"; do
  train copy "$seed" "$teach" --teacher drf
  part DL2 "$seed"
  train no-teacher "$seed" "$reward"
  part progress "$seed" reward=progress
  part waiting "$seed" reward=waiting
  part no-value "$seed" no-value=true
  part helped "$seed" explore=0.4
  part no-replay "$seed" replay-size=0
  part sure "$seed" soften=1
  train paper "$seed" "$teach $reward updates=100,iterations=12,state=paper" --teacher drf
  train dense-copy "$seed" "$teach net=dense,hidden=256" --teacher drf
  train dense "$seed" "$reward net=dense,hidden=256" --from "ablation-dense-copy-$seed.bin"
done

policies=drf
for name in "${names[@]}"; do
  for seed in "${seeds[@]}"; do policies+=,dl2:model=ablation-$name-$seed.bin; done
done
for workload in {101..106}; do
  "$pacer" simulate --workload synthetic:dl2=small "${world[@]}" --seed "$workload" --policy "$policies" --output csv
done >"$scratch/rows.csv"
cd "$root"
{
  echo "| DL2 | mean JCT / drf | each training |"
  echo "|---|---|---|"
  for name in "${names[@]}"; do
    awk -F, -v name="$name" -v what="${what[$name]}" -v bars="$scratch/bars.csv" "$interval"'
      $1 == "policy" { for (i = 1; i <= NF; i++) if ($i == "avg_jct_s") column = i; next }
      $1 == "drf" { drf += $column; next }
      match($1, "ablation-" name "-[0-9]+\\.bin$") { seed = $1; gsub(/.*-|\.bin/, "", seed); sum[seed] += $column }
      END {
        for (s = 1; s in sum; s++) { r = sum[s] / drf; list = list sprintf("%s%.3f", s > 1 ? ", " : "", r); total += r; square += r * r; n++ }
        mean = total / n; error = half(n, total, square)
        printf "| %s | %.3f ± %.3f | %s |\n", what, mean, error, list
        gsub("`", "", what); printf "\"%s\",%.3f,%.3f,\n", what, mean, error >> bars
      }' "$scratch/rows.csv"
  done
} | renew dl2-ablations
go run ./bench/bars "DL2, and without each of its parts: mean JCT / drf" "of drf" <"$scratch/bars.csv" >docs/benchmarks/dl2-ablations.svg
