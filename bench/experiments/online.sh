#!/usr/bin/env bash
# online.sh: effect of prediction error on scheduling, with and without learning from running jobs.
. "$(dirname "$0")/lib.bash"
import rubick
study online
