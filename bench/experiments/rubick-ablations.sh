#!/usr/bin/env bash
# rubick-ablations.sh: rubick, what is left of it without the choice of plans, of resources and of both, and its rivals on Rubick's traces.
. "$(dirname "$0")/lib.bash"
export PACER_SHARED=$shared PACER_TABLE=$scratch/table.md
go test ./bench -count=1 -run 'TestRubickAblations$'
renew rubick-ablations <"$PACER_TABLE"
