#!/usr/bin/env bash
# rubick-ablations.sh: rubick without the choice of plans, of resources and of both, and other policies, on Rubick's traces.
. "$(dirname "$0")/lib.bash"
PACER_SHARED=$shared PACER_OUT=$scratch go test ./bench -count=1 -run 'TestRubickAblations$'
renew rubick-ablations <"$scratch/rubick-ablations.md"
cp "$scratch/rubick-ablations.svg" docs/benchmarks/
