#!/usr/bin/env bash
# ones-ablations.sh: ONES without each of its parts, with other populations and cadences, and by its artifact's settings.
. "$(dirname "$0")/lib.bash"
for i in {1..3}; do
  POLLUX=$shared/data/pollux bench/studies/pollux-draw.sh "$i" >"$scratch/drawn.csv"
  add "drawn-$i.csv" <"$scratch/drawn.csv"
done
study ones-ablations
