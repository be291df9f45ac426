#!/usr/bin/env bash
# sia-free.sh: sia on its own, in the semantics of its simulator, ties broken at random.
. "$(dirname "$0")/lib.bash"
study sia-free
