#!/usr/bin/env bash
# online.sh: what not knowing how fast jobs run costs, and what of it learning while
# they run wins back: bench/studies/online.yaml on Rubick's base trace.
#
# RUBICK is the directory with simulator/ of AlibabaPAI/reconfigurable-dl-scheduler,
# PACER the binary (default: pacer). Runs are kept in DATA, a store of its own
# (default: a temporary one), so that the same command goes on where it stopped.
set -euo pipefail
: "${RUBICK:?the directory with simulator/ of AlibabaPAI/reconfigurable-dl-scheduler}"
root=$(realpath "$(dirname "$0")/../..")
pacer=${PACER:-pacer}
[[ $pacer == */* ]] && pacer=$(realpath "$pacer")
rubick=$(realpath "$RUBICK")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
data=$(realpath -m "${DATA:-$dir/data}")
cd "$dir"
ln -s "$rubick/simulator/workloads/workload-base.csv" .
"$pacer" --data "$data" import rubick "$rubick" >/dev/null
"$pacer" --data "$data" sweep "$root/bench/studies/online.yaml" --output csv --runs-out runs.csv >rows.csv

# What both parts below begin with: rows by column name, of the study and of its runs.
cat >read.awk <<'AWK'
BEGIN { FS = "," }
FNR == 1 { file++; delete column; columns = NF; for (i = 1; i <= NF; i++) column[$i] = i; next }
file == 1 { error[$column["scheduler"]] += $(column["learned.mape"] + NF - columns); next } # there are commas in the warnings before it
{
  name = $column["scheduler"]
  split(name, part, ": ")
  n++; policy[n] = part[1]; belief[n] = part[2]
  jobs = $column["jobs"]; restarts[n] = $column["restarts"] / jobs
  off[n] = error[name] / $column["seeds"]
  for (k = 1; k <= 2; k++) {
    f = k == 1 ? "avg_jct" : "makespan"
    mean[n, k] = $column[f "_s.mean"]; half[n, k] = ($column[f "_s.hi"] - $column[f "_s.lo"]) / 2
    if (belief[n] == "perfect") perfect[part[1], k] = mean[n, k]
    cost[n, k] = 100 * $column["vs_baseline." f ".mean"] / perfect[part[1], k]
    about[n, k] = 50 * ($column["vs_baseline." f ".hi"] - $column["vs_baseline." f ".lo"]) / perfect[part[1], k]
  }
}
AWK

cat >table.awk <<'AWK'
function money(i, k) { return belief[i] == "perfect" ? "-" : sprintf("%+.1f ± %.1f %%", cost[i, k], about[i, k]) }
END {
  print "| policy | belief | off by | average JCT | costs | makespan | costs | restarts per job |"
  print "|---|---|---|---|---|---|---|---|"
  for (i = 1; i <= n; i++)
    printf "| %s | %s | %s | %.0f ± %.0f s | %s | %.0f ± %.0f s | %s | %.2f |\n", policy[i], belief[i],
      (off[i] > 0 ? sprintf("%.1f %%", 100 * off[i]) : "-"), mean[i, 1], half[i, 1], money(i, 1), mean[i, 2], half[i, 2], money(i, 2), restarts[i]
}
AWK
awk -f read.awk -f table.awk runs.csv rows.csv >table.md

cat >draw.awk <<'AWK'
function x(k, v) { return 190 + 330 * (k - 1) + (v + 15) * 290 / 45 }
END {
  height = 60
  for (i = 1; i <= n; i++) height += belief[i] == "perfect" ? 12 : 18
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 840 %d\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n", height + 20
  print "<title>What not knowing how fast jobs run costs, in per cent, with 95 % intervals</title>"
  print "<style>.page { fill: #ffffff; } .ink { fill: #1c2024; } .soft { fill: #5b636b; } .grid { stroke: #dfe3e7; } .line { stroke: #0068a8; stroke-width: 1.75; } .dot { fill: #0068a8; }"
  print "@media (prefers-color-scheme: dark) { .page { fill: #15181b; } .ink { fill: #e6e9ec; } .soft { fill: #9ca5ad; } .grid { stroke: #333a40; } .line { stroke: #5db2ee; } .dot { fill: #5db2ee; } }</style>"
  print "<rect class=\"page\" width=\"100%\" height=\"100%\"/>"
  for (k = 1; k <= 2; k++) {
    printf "<text class=\"ink\" x=\"%.1f\" y=\"18\" font-weight=\"600\">%s</text>\n", x(k, -15), k == 1 ? "mean JCT" : "makespan"
    for (v = -10; v <= 30; v += 10)
      printf "<path class=\"grid\" d=\"M%.1f 44V%d\"/><text class=\"soft\" text-anchor=\"middle\" x=\"%.1f\" y=\"38\">%+d %%</text>\n", x(k, v), height, x(k, v), v
  }
  y = 48; before = ""
  for (i = 1; i <= n; i++) {
    if (belief[i] == "perfect") continue
    if (policy[i] != before) { y += 12; printf "<text class=\"ink\" x=\"10\" y=\"%d\" font-weight=\"600\">%s</text>\n", y + 14, policy[i]; before = policy[i] }
    y += 18
    printf "<text class=\"soft\" x=\"60\" y=\"%d\">%s</text>\n", y - 4, belief[i]
    for (k = 1; k <= 2; k++) {
      lo = cost[i, k] - about[i, k]; if (lo < -15) lo = -15
      hi = cost[i, k] + about[i, k]; if (hi > 30) hi = 30
      printf "<path class=\"line\" d=\"M%.1f %dH%.1f\"/><circle class=\"dot\" cx=\"%.1f\" cy=\"%d\" r=\"3.5\"/>\n", x(k, lo), y - 8, x(k, hi), x(k, cost[i, k]), y - 8
    }
  }
  print "</svg>"
}
AWK
awk -f read.awk -f draw.awk runs.csv rows.csv >"$root/docs/results/online.svg"

(cd "$root" && go run ./bench/renew docs/results.md online) <table.md
