#!/usr/bin/env bash
# elastic.sh: pacer and sia where jobs choose their batch, over seven workloads of Sia's artifact, speeds known or learned.
. "$(dirname "$0")/lib.bash"
study elastic
