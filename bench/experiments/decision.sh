#!/usr/bin/env bash
# decision.sh: one decision about 100 to 3000 jobs on ten times as many devices of four types, on one core.
. "$(dirname "$0")/lib.bash"
go test ./scheduler/internal/lookahead ./scheduler/internal/lp ./scheduler/policy/sia -run xxx -cpu 1 -benchtime 3x -count 5 \
  -bench '^BenchmarkDecide$|^Benchmark(Choice|Sia)$/^jobs=1000' | awk -v rows="$scratch/rows.csv" "$interval"'
  /^pkg:/ { package = $2; sub(/.*scheduler\//, "", package) }
  /^Benchmark/ && !/policy=/ {
    name = package ": " substr($1, length("Benchmark") + 1)
    if (!(name in n)) order[++count] = name
    n[name]++
    cpu = ""
    for (i = 3; i < NF; i += 2) {
      if ($(i + 1) == "cpu-ns/op") cpu = $i
      if ($(i + 1) == "ns/op") wall = $i
      if ($(i + 1) == "gap") gap[name] = $i
    }
    s = (cpu == "" ? wall : cpu) / 1e6
    kind[name] = cpu == "" ? "wall" : "processor"
    sum[name] += s; square[name] += s * s
  }
  END {
    print "| benchmark | time of a decision | clock | gap to the bound |"
    print "|---|---|---|---|"
    for (i = 1; i <= count; i++) {
      name = order[i]; k = n[name]; mean = sum[name] / k; error = half(k, sum[name], square[name])
      printf "| `%s` | %.0f ± %.0f ms | %s | %s |\n", name, mean, error, kind[name], name in gap ? sprintf("%.3f %%", 100 * gap[name]) : "-"
      if (name !~ /Decide/) continue
      label = name
      sub(/.*Decide\//, "", label); sub(/types=4\/plans=20\//, "", label); gsub(/\//, ", ", label); gsub(/=/, " ", label)
      printf "\"%s\",%.2f,%.2f,gap %.1f %%\n", label, mean, error, 100 * gap[name] >rows
    }
  }' >"$scratch/table.md"
go run ./bench/bars "A decision of pacer, one core" "ms of processor time" <"$scratch/rows.csv" >"$root/docs/benchmarks/decision.svg"
renew decision <"$scratch/table.md"
