# lib.bash is sourced by every experiment. An experiment is a script NAME.sh; its second
# line describes it (make experiments lists these lines). It stores its tables in
# bench/results and its picture in docs/benchmarks, and renews the tables of the pages
# there. lib.bash changes to the root of the repository and sets:
#
#	PACER_SHARED  the directory with data/ and baselines/, see docs/benchmarks/README.md
#	PACER         the binary (default: bin/pacer, built by make build)
#	DATA          a directory that keeps finished runs, so that an interrupted experiment
#	              continues (default: a temporary one)
#	scratch       a temporary directory, removed at the end
set -euo pipefail
export PATH=$PATH:/usr/local/go/bin
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
pacer=$(realpath "${PACER:-$root/bin/pacer}")
: "${PACER_SHARED:?the directory with data/ and baselines/, see docs/benchmarks/README.md}"
shared=$(realpath "$PACER_SHARED")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
data=$(realpath -m "${DATA:-$scratch/data}")
cd "$root"

# renew NAME stores the Markdown table on standard input as bench/results/NAME.csv and
# renews the page that shows it.
renew() { go run ./bench/renew "$1"; }

# interval is an awk function: half(n, sum, square) is half of the 95 % interval of the mean of n = 3, 5 or
# 30 values, from their sum and the sum of their squares. The quantiles are those of Student's t at n-1 degrees.
interval='
  BEGIN { student[3] = 4.3027; student[5] = 2.776; student[30] = 2.0452 }
  function half(n, sum, square,   rest) {
    if (!(n in student)) { print "no quantile for " n " values" >"/dev/stderr"; exit 1 }
    rest = square - sum * sum / n
    return rest > 0 ? student[n] * sqrt(rest / (n - 1) / n) : 0
  }'

# import NAME [DIRECTORY] stores published measurements.
import() { "$pacer" --data "$data" import "$1" "$shared/data/${2:-$1}" >&2 || [ $? = 4 ]; } # 4: some rows could not be used

# study NAME [FLAG...] runs bench/studies/NAME.yaml and stores its table and its picture.
# The study names files by their path below PACER_SHARED, or below world, the directory
# of files that add makes.
study() {
  printf '<!-- %s -->\n<!-- /%s -->\n' "$1" "$1" >"$scratch/$1.md"
  (cd "${world:-$shared}" && "$pacer" --data "$data" sweep "$root/bench/studies/$1.yaml" \
    --markdown "$scratch/$1.md" --svg "$root/docs/benchmarks/$1.svg" "${@:2}")
  renew "$1" <"$scratch/$1.md"
}

# add FILE stores standard input in world. It must not end a pipe, which would lose
# the variable.
add() {
  world=$scratch/world
  mkdir -p "$world"
  ln -sfn "$shared/data" "$world/data"
  cat >"$world/$1"
}

# rival WORKLOAD adds dl2.bin, a policy trained once for such jobs and kept in DATA under
# the name of the experiment.
rival() {
  local kept
  kept=$data/$(basename "$0" .sh)-dl2.bin
  mkdir -p "$data"
  [[ -s $kept ]] || { PACER=$pacer POLLUX=$shared/data/pollux bench/learned/dl2-pollux.sh "$1" "$scratch/dl2.bin" >&2 && mv "$scratch/dl2.bin" "$kept"; }
  add dl2.bin <"$kept"
}
