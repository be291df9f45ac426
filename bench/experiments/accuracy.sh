#!/usr/bin/env bash
# accuracy.sh: how far every family of performance models is off on rows it has not seen.
. "$(dirname "$0")/lib.bash"
"$pacer" bench accuracy --shared "$shared" --markdown docs/results.md
