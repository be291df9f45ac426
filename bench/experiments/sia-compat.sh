#!/usr/bin/env bash
# sia-compat.sh: Sia as published, by its own simulator's semantics: given its
# decisions, and on its own with ties broken at random. Prints two tables.
#
# SHARED is the directory with data/sia (siasosp23/artifacts: traces/, workloads/)
# and baselines/sia. PACER is the binary (default: pacer).
set -euo pipefail
: "${SHARED:?the directory of data/sia and baselines/sia}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# run WORKLOAD [FLAG...] simulates a workload as Sia's simulator does.
run() {
  "${PACER:-pacer}" --seed "${seed:-0}" simulate --workload "$SHARED/data/sia/workloads/$1/workload-1.csv:sia" \
    --cluster 6x4xT4,2x8xA100-40GB,3x8xRTX2080Ti --truth "goodput:$SHARED/data/sia" --output csv "${@:2}"
}

echo "Given the decisions of Sia's simulator, philly 1:"
run philly --policy sia --compat sia --replay "$SHARED/baselines/sia/sia_philly_workload-1_rounds.csv" \
  --jobs-out "$dir/jobs.csv" 2>"$dir/log" | awk -F, 'NR == 2 { printf "average JCT %.2f s, makespan %d s, %d restarts\n", $6, $9, $11 }' ||
  { cat "$dir/log" >&2; exit 1; }
grep '^replay:' "$dir/log"
awk -F, '
  NR == FNR { if (FNR > 1) want[$1] = $6; next }
  FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
  { n++; got = $at["jct_s"]; ref = want[$at["job_id"]]; if (got == ref) equal++; off += (got > ref ? got - ref : ref - got) / ref }
  END { printf "%d of %d jobs equal to the second, mean deviation %.3f %%\n", equal, n, 100 * off / n }
' "$SHARED/baselines/sia/sia_philly_workload-1.csv" "$dir/jobs.csv"

for workload in philly saturn; do
  echo "On its own, $workload 1, costs + N(0, 1e-5), seeds 1 to 10:"
  for seed in $(seq 10); do
    run "$workload" --policy sia:noise=1e-5 --compat sia 2>"$dir/log" | awk -F, 'NR == 2 { print $6, $9, $11 / 160 }' ||
      { cat "$dir/log" >&2; exit 1; }
  done | awk '
    { n++; s += $1; q += $1 * $1; m += $2; r += $3; if (n == 1 || $1 < lo) lo = $1; if ($1 > hi) hi = $1 }
    END { printf "average JCT %.1f s (sd %.1f, %.0f to %.0f), makespan %.0f s, %.2f restarts a job\n", s / n, sqrt((q - s * s / n) / (n - 1)), lo, hi, m / n, r / n }'
done
