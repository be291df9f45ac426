#!/usr/bin/env bash
# pollux-stream.sh STUDY.yaml [FLAG...]: runs a study on the eight workloads of
# Pollux's simulator, one after the other as one stream of 1280 jobs, and the
# tables its jobs were measured in.
#
# POLLUX is the directory with workloads/ and traces/ of petuum/adaptdl, branch
# osdi21-artifact, directory simulator. PACER is the binary (default: pacer).
# The study finds pollux-stream.csv and pollux/ in its working directory.
set -euo pipefail
: "${POLLUX:?the directory of workloads/ and traces/ of the simulator of petuum/adaptdl, branch osdi21-artifact}"
study=$(realpath "${1:?STUDY.yaml}")
shift
pollux=$(realpath "$POLLUX")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
ln -s "$pollux" pollux
# Each workload has 160 jobs in 8 hours; a job is its application and its number in the stream.
awk -F, -v OFS=, '
  FNR == 1 { if (NR == 1) print; else offset += 8 * 3600; next }
  { print $3 "-" n++, $2 + offset, $3, $4, $5 }
' pollux/workloads/workload-{1,2,3,4,5,6,7,8}.csv >pollux-stream.csv
"${PACER:-pacer}" sweep "$study" "$@"
