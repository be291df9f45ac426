#!/usr/bin/env bash
# unmodelled.sh: jobs without a performance model, on windows of three traces.
. "$(dirname "$0")/lib.bash"
PACER_SHARED=$shared go test -count=1 -timeout 0 -run TestUnmodelledJobs -v ./bench |
  awk '/unmodelled_test.go.*\|/ { sub(/^[^|]*/, ""); print }' >"$scratch/rows.md"
{
  echo "| window | cluster | best of the three | pacer | pacer:steps=unknown | rubick |"
  echo "|---|---|---|---|---|---|"
  cat "$scratch/rows.md"
} | renew unmodelled
