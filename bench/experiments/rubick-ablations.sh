#!/usr/bin/env bash
# rubick-ablations.sh: runs rubick, what is left of it without the choice of plans,
# of resources and of both, and its rivals on the three traces of Rubick's artifact,
# 5 seeds each, and renews the table in docs/results.md.
#
# PACER_SHARED is a directory with data/rubick, as the tests take it.
set -euo pipefail
: "${PACER_SHARED:?a directory with data/rubick, a clone of AlibabaPAI/reconfigurable-dl-scheduler}"
cd "$(dirname "$0")/../.."
PACER_TABLE=$(mktemp)
export PACER_TABLE
trap 'rm -f "$PACER_TABLE"' EXIT
go test ./bench -count=1 -run 'TestRubickAblations$'
awk -v table="$PACER_TABLE" '
  /^<!-- end rubick-ablations -->/ { inside = 0 }
  !inside { print }
  /^<!-- rubick-ablations -->/ { inside = 1; while ((getline line < table) > 0) print line }
' docs/results.md >"$PACER_TABLE.md"
mv "$PACER_TABLE.md" docs/results.md
