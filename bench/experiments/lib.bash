# lib.bash is what experiments begin with. An experiment is a script NAME.sh whose second
# line says what it is about (make experiments shows it), which renews what is between
# <!-- NAME --> and <!-- /NAME --> in docs/results.md. This goes to the root of the
# repository and sets what they have in common:
#
#	PACER_SHARED  the directory with data/ and baselines/, see docs/results.md
#	PACER         the binary (default: bin/pacer, as make build leaves it)
#	DATA          a directory that keeps finished runs, so that the same command goes
#	              on where it stopped (default: a temporary one)
#	scratch       a directory that is removed at the end
set -euo pipefail
export PATH=$PATH:/usr/local/go/bin
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
pacer=$(realpath "${PACER:-$root/bin/pacer}")
: "${PACER_SHARED:?the directory with data/ and baselines/, see docs/results.md}"
shared=$(realpath "$PACER_SHARED")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
data=$(realpath -m "${DATA:-$scratch/data}")
cd "$root"

# renew NAME puts standard input between <!-- NAME --> and <!-- /NAME --> of
# docs/results.md.
renew() { go run ./bench/renew docs/results.md "$1"; }

# import NAME [DIRECTORY] stores published measurements.
import() { "$pacer" --data "$data" import "$1" "$shared/data/${2:-$1}" >&2 || [ $? = 4 ]; } # 4: some rows could not be used

# study NAME [FLAG...] runs bench/studies/NAME.yaml, which names files by their path
# below PACER_SHARED, or below world, a directory of files that an experiment has made
# besides: see add. Its table goes to docs/results.md, its picture to docs/results.
study() {
  (cd "${world:-$shared}" && "$pacer" --data "$data" sweep "$root/bench/studies/$1.yaml" \
    --markdown "$root/docs/results.md" --svg "$root/docs/results/$1.svg" "${@:2}")
}

# add FILE adds standard input to what a study finds; not at the end of a pipe.
add() {
  world=$scratch/world
  mkdir -p "$world"
  ln -sfn "$shared/data" "$world/data"
  cat >"$world/$1"
}

# rival WORKLOAD adds dl2.bin, a policy that is trained once for such jobs and kept in
# DATA under the name of the experiment.
rival() {
  local kept
  kept=$data/$(basename "$0" .sh)-dl2.bin
  mkdir -p "$data"
  [[ -s $kept ]] || { PACER=$pacer POLLUX=$shared/data/pollux bench/learned/dl2-pollux.sh "$1" "$scratch/dl2.bin" >&2 && mv "$scratch/dl2.bin" "$kept"; }
  add dl2.bin <"$kept"
}
