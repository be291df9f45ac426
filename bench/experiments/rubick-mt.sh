#!/usr/bin/env bash
# rubick-mt.sh: how many guaranteed jobs of Rubick's trace mt end later than under fifo-backfill.
. "$(dirname "$0")/lib.bash"
import rubick
study rubick-mt
