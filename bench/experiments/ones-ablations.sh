#!/usr/bin/env bash
# ones-ablations.sh: ONES without each of its parts, and with other populations and cadences.
. "$(dirname "$0")/lib.bash"
study ones-ablations
