#!/usr/bin/env bash
# elastic.sh: known|pooled|alone runs pacer and sia on workloads of Sia's artifact
# in the semantics of its simulator and prints a table of average JCTs, by what is
# known of speeds: curves on arrival, what all jobs of a model have seen from one
# device up, or what each has seen itself, as in the artifact.
#
# SIA is the directory with workloads/ and traces/ of siasosp23/artifacts,
# sia-simulator. PACER is the binary (default: pacer). TRACES are the workloads
# (default: those of docs/results.md).
set -euo pipefail
: "${SIA:?the directory of workloads/ and traces/ of siasosp23/artifacts, sia-simulator}"
case "${1:-}" in
  known) how=(--compat sia:own-models=false) ;;
  pooled) how=(--compat sia --belief pooled) ;;
  alone) how=(--compat sia) ;;
  *) echo "usage: $0 known|pooled|alone" >&2; exit 2 ;;
esac
err=$(mktemp)
trap 'rm -f "$err"' EXIT
echo "| workload | pacer | sia |"
echo "|---|---|---|"
read -ra traces <<<"${TRACES:-$(echo philly/workload-{1,2,3,4} saturn/workload-{1,2,3})}"
for trace in "${traces[@]}"; do
  "${PACER:-pacer}" simulate --workload "$SIA/workloads/$trace.csv:sia" --cluster 6x4xT4,2x8xA100-40GB,3x8xRTX2080Ti \
    --policy pacer,sia --truth "goodput:$SIA" "${how[@]}" --output csv 2>"$err" |
    awk -F, -v trace="$trace" '
      NR == 1 { for (i = 1; i <= NF; i++) if ($i == "avg_jct_s") column = i; next }
      { jct[$1] = $column }
      END { if (NR) printf "| %s | %.0f s | %.0f s |\n", trace, jct["pacer"], jct["sia"] }' ||
    { cat "$err" >&2; exit 1; }
done
