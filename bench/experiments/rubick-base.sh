#!/usr/bin/env bash
# rubick-base.sh: rubick and pacer on Rubick's base trace: estimates that learn or are exact, steps known or not, makespan or mean.
. "$(dirname "$0")/lib.bash"
import rubick
study rubick-base
