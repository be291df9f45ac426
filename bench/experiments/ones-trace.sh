#!/usr/bin/env bash
# ones-trace.sh: ONES and the same policies on jobs like those of its own trace.
. "$(dirname "$0")/lib.bash"
rival synthetic:ones=400
study ones-trace
