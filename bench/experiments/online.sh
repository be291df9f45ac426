#!/usr/bin/env bash
# online.sh: what not knowing how fast jobs run costs, and what of it learning while they run wins back.
. "$(dirname "$0")/lib.bash"
import rubick
study online
