#!/usr/bin/env bash
# rubick-base.sh: rubick and pacer on Rubick's base trace: beliefs that learn or are perfect, steps known or not, makespan or mean.
. "$(dirname "$0")/lib.bash"
import rubick
study rubick-base
