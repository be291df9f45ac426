#!/usr/bin/env bash
# ones.sh: ONES beside tiresias, optimus, pacer and sia, over eight workloads of Pollux's artifact.
. "$(dirname "$0")/lib.bash"
study ones
