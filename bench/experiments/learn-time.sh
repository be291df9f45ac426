#!/usr/bin/env bash
# learn-time.sh: how long a decision and an update of DL2 and an iteration of ONES take of one core.
. "$(dirname "$0")/lib.bash"
go test ./scheduler/internal/nn ./scheduler/policy -run xxx -cpu 1 -count 5 -bench '^Benchmark(Infer|Update|OnesIteration)$' | awk '
  /^Benchmark/ {
    name = substr($1, length("Benchmark") + 1)
    if (!(name in n)) order[++count] = name
    n[name]++; ms = $3 / 1e6; sum[name] += ms; square[name] += ms * ms
  }
  END {
    print "| benchmark | ms |"; print "|---|---|"
    for (i = 1; i <= count; i++) {
      name = order[i]; k = n[name]; mean = sum[name] / k
      printf "| `%s` | %.3f ± %.3f |\n", name, mean, 2.776 * sqrt((square[name] - k * mean * mean) / (k - 1) / k) # t(4, 0.975)
    }
  }' | renew learn-time
