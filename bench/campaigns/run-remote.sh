#!/bin/bash
# Runs one campaign on a machine that has nothing but python3 with torch, and
# leaves one Parquet file to take home. See usage below.
set -uo pipefail

usage() {
	cat <<'USAGE'
usage: run-remote.sh [-o DIR] [-p PACER] CAMPAIGN.yaml [flag of pacer profile run]...

Measures CAMPAIGN.yaml here and writes to DIR (default: NAME-HOST in the working
directory, by the name of the file):

  NAME.parquet    the measurements: pacer import parquet NAME.parquet reads them
  summary.json    what was measured and why it ended (pacer profile run)
  devices.json    what is in this machine (pacer profile devices)
  log.txt         everything that was said meanwhile
  NAME.yaml       the campaign

Copy pacer, this script and the campaign file to the machine; PACER is the binary
(default: $PACER, else pacer beside this script, else on PATH). python3 needs
torch; PACER_PYTHON names another interpreter. A run that was cut off, or is
given a larger budget, goes on when it is started again with the same DIR, whose
data/ holds the store. The binary needs glibc 2.34 or later (Debian 12, Ubuntu
22.04). Over ssh, run this in tmux or under nohup. Example:

  ./run-remote.sh gpu-single.yaml --max-wall 8m
USAGE
}

fail() {
	echo "run-remote.sh: $*" >&2
	exit 2
}

out='' pacer=${PACER:-}
while getopts ':ho:p:' flag; do
	case $flag in
	h) usage && exit 0 ;;
	o) out=$OPTARG ;;
	p) pacer=$OPTARG ;;
	:) fail "-$OPTARG wants a value" ;;
	*) fail "unknown flag -$OPTARG, see -h" ;;
	esac
done
shift $((OPTIND - 1))
if [ $# -eq 0 ]; then
	usage >&2
	exit 2
fi
campaign=$1
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -f "$campaign" ] || campaign=$here/$campaign
[ -f "$campaign" ] || fail "no campaign file ${campaign##*/} in the working directory or beside this script"
if [ -z "$pacer" ]; then
	pacer=$here/pacer
	[ -x "$pacer" ] || pacer=$(command -v pacer) || fail "no pacer beside this script or on PATH: give it with -p"
fi
command -v "$pacer" >/dev/null || fail "$pacer is no program"

name=$(basename "$campaign")
name=${name%.*}
out=${out:-$name-$(uname -n)}
mkdir -p "$out" || fail "cannot write $out"
data=$out/data # kept, so that a run goes on when it is started again
log=$out/log.txt
cp -f "$campaign" "$out/$name.yaml"

# What ends this script ends the campaign, not what follows it.
record() { trap '' INT TERM HUP && exec tee -a "$log" >&2; }
trap : INT TERM HUP

{
	date -u '+%Y-%m-%dT%H:%M:%SZ'
	"$pacer" version
	echo "$pacer profile run $campaign $*"
} 2>&1 | record
"$pacer" profile devices --output json >"$out/devices.json" 2>>"$log" || echo "run-remote.sh: no inventory, see $log" >&2

"$pacer" profile run "$campaign" --data "$data" --output json "$@" >"$out/summary.json" 2> >(record) &
run=$!
trap 'kill -TERM "$run" 2>/dev/null' TERM HUP # a Ctrl-C reaches it without
wait "$run"
code=$?
while kill -0 "$run" 2>/dev/null; do # the wait was interrupted
	wait "$run"
	code=$?
done

# Whatever ended it: what is stored goes home.
if ! "$pacer" export "$out/$name.parquet" --data "$data" >>"$log" 2> >(record); then
	echo "run-remote.sh: nothing to take home, see $log" >&2
	exit $((code ? code : 1))
fi
echo "$out/$name.parquet"
exit "$code"
