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
torch; PACER_PYTHON names another interpreter. A run that was cut off goes on
when it is started again with the same DIR. Example:

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
data=$out/data # kept until the export is done, so that an interrupted run goes on
log=$out/log.txt
cp -f "$campaign" "$out/$name.yaml"

# Ctrl-C ends the campaign, not what follows it.
trap : INT TERM

{
	date -u '+%Y-%m-%dT%H:%M:%SZ'
	"$pacer" version
	echo "$pacer profile run $campaign $*"
} 2>&1 | tee -i -a "$log" >&2
"$pacer" profile devices --output json >"$out/devices.json" 2>>"$log" || echo "run-remote.sh: no inventory, see $log" >&2

{ "$pacer" profile run "$campaign" --data "$data" --output json "$@" 2>&1 >&3 | tee -i -a "$log" >&2; } 3>"$out/summary.json"
code=$? # by pipefail that of the campaign

# Whatever ended it: what is stored goes home.
if ! "$pacer" export "$out/$name.parquet" --data "$data" >>"$log" 2> >(tee -i -a "$log" >&2); then
	echo "run-remote.sh: nothing to take home, see $log" >&2
	exit $((code ? code : 1))
fi
[ "$code" -eq 0 ] && rm -rf "$data"
echo "$out/$name.parquet"
exit "$code"
