#!/usr/bin/env bash
# learn-time.sh: time of a decision and an update of DL2 and of an iteration of ONES on one core.
. "$(dirname "$0")/lib.bash"
go test ./scheduler/internal/nn ./scheduler/policy/ones -run xxx -cpu 1 -count 5 -bench '^Benchmark(Infer|Update|OnesIteration)$' | awk "$interval"'
  /^Benchmark/ {
    name = substr($1, length("Benchmark") + 1)
    if (!(name in n)) order[++count] = name
    n[name]++; ms = $3 / 1e6; sum[name] += ms; square[name] += ms * ms
  }
  END {
    print "| benchmark | time |"; print "|---|---|"
    for (i = 1; i <= count; i++) {
      name = order[i]
      printf "| `%s` | %.3f ± %.3f ms |\n", name, sum[name] / n[name], half(n[name], sum[name], square[name])
    }
  }' | renew learn-time
