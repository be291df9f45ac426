#!/usr/bin/env bash
# first-decision.sh: the first decision about 1000 and 5000 waiting jobs of six models, curves included, on one core.
. "$(dirname "$0")/lib.bash"
go test -c -o "$scratch/bench.test" ./bench
for policy in pacer rubick; do
  for jobs in 1000 5000; do
    for _ in 1 2 3; do # one process each: peak memory is that of a process
      "$scratch/bench.test" -test.run xxx -test.cpu 1 -test.benchtime 1x -test.bench "^BenchmarkFirstDecision\$/policy=$policy/jobs=$jobs/"
    done
  done
done | awk "$interval"'
  /^Benchmark/ {
    name = $1; sub(/.*policy=/, "", name); sub(/\/jobs=/, " | ", name); sub(/\/devices=/, " | ", name)
    if (!(name in n)) order[++count] = name
    n[name]++
    for (i = 3; i < NF; i += 2) {
      if ($(i + 1) == "cpu-ns/op") { sum[name] += $i / 1e9; square[name] += $i * $i / 1e18 }
      if ($(i + 1) == "peak-rss-B" && $i > peak[name]) peak[name] = $i
      if ($(i + 1) == "gap") gap[name] = $i
    }
  }
  END {
    print "| policy | jobs | devices | processor time | peak memory | gap to the bound |"
    print "|---|---|---|---|---|---|"
    for (i = 1; i <= count; i++) {
      name = order[i]
      printf "| %s | %.2f ± %.2f s | %.0f MB | %s |\n", name, sum[name] / n[name], half(n[name], sum[name], square[name]), peak[name] / 1e6,
        name in gap ? sprintf("%.2f %%", 100 * gap[name]) : "-"
    }
  }' | renew first-decision
