#!/usr/bin/env bash
# pollux.sh: optimus, pacer and others on one type of device, over eight workloads of Pollux's artifact.
. "$(dirname "$0")/lib.bash"
import sia # has the step times on T4 that optimus is fitted to
study pollux
