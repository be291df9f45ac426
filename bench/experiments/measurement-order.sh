#!/usr/bin/env bash
# measurement-order.sh: error after rows in order of their expected gain, against random orders.
. "$(dirname "$0")/lib.bash"
"$pacer" bench accuracy --shared "$shared" --protocol chosen --family hybrid --output json >"$scratch/chosen.json"
python3 - "$scratch/chosen.json" <<'PY' | renew measurement-order-sources
import json, sys
print("| source left out | error, chosen over random | one standard error |\n|---|---|---|")
for f in json.load(open(sys.argv[1]))["results"][0]["figures"]:
    name = f["name"].removeprefix("error chosen/random, ")
    noise = "-" if name.startswith("mean") else f"{100 * (f['must']['at_most'] - 1):.1f} %"
    print(f"| {name} | {100 * f['value']:.1f} % | {noise} |")
PY

# first CAMPAIGN prints the first points of a campaign.
first() {
  "$pacer" --data "$data" profile explain "bench/campaigns/$1.yaml" --next 8 --output csv | python3 -c '
import csv, sys
print("| number | model | shape | plan | why |\n|---|---|---|---|---|")
for i, row in enumerate(csv.DictReader(sys.stdin), 1):
    print("| {} | {model} | {shape} | {plan} | {why} |".format(i, **row))'
}
import published field
first libai-replay | renew measurement-order-libai
import rubick
first rubick-replay | renew measurement-order-rubick

go test -c -o "$scratch/bench.test" ./bench
(cd bench && "$scratch/bench.test" -test.run TestAdaptiveChoice -test.v -test.timeout 0) >"$scratch/replay.log"
python3 - "$scratch/replay.log" <<'PY' >"$scratch/replays"
import re, sys
tables, bar = {}, ""
for line in open(sys.argv[1]):
    if m := re.search(r"=== RUN +TestAdaptiveChoice/(\w+)", line):
        family = m[1]
    elif m := re.search(r"rows until (\d+ %) error", line):
        bar = m[1]
    elif m := re.match(r" +(\w+) +\| +([\d.]+) \([^)]*\) -> +([\d.]+) \([^)]*\) \| +([\d.]+) \([^)]*\) -> +([\d.]+) ", line):
        tables.setdefault(family, {}).setdefault(m[1], []).extend(float(m[i]) for i in (2, 3, 4, 5))
for family, rows in tables.items():
    print(family)
    print("| job type | " + " | ".join(f"{b} %{s}, {o}" for b in (15, 10) for s in ("", " stays") for o in ("random", "adaptive")) + " |")
    print("|---" * 9 + "|")
    for name, v in rows.items():
        print(f"| {name} | " + " | ".join(f"{x:g}" for x in v) + " |")
    print("| sum | " + " | ".join(f"{sum(v[i] for v in rows.values()):g}" for i in range(8)) + " |")
PY
jobs() { awk -v family="$1" '!/^[|]/ { on = $0 == family; next } on' "$scratch/replays"; }
jobs hybrid | renew measurement-order-jobs-hybrid
jobs rubick | renew measurement-order-jobs-rubick
