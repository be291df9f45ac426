#!/usr/bin/env bash
# sia-compat.sh: the decisions of Sia's own simulator imposed, and all that follows from them compared.
. "$(dirname "$0")/lib.bash"
theirs=$shared/baselines/sia/sia_philly_workload-1
"$pacer" simulate --workload "$shared/data/sia/workloads/philly/workload-1.csv:sia" --cluster 6x4xT4,2x8xA100-40GB,3x8xRTX2080Ti \
  --truth "goodput:$shared/data/sia" --policy sia --compat sia --replay "${theirs}_rounds.csv" \
  --jobs-out "$scratch/jobs.csv" 2>"$scratch/log" >/dev/null || { cat "$scratch/log" >&2; exit 1; }
{
  awk -F, '
    FNR == 1 { file++; for (i = 1; i <= NF; i++) at[file, $i] = i; next }
    file == 1 { want[$at[1, "name"]] = $at[1, "jct"]; next }
    {
      n++; got = $at[2, "jct_s"]; ref = want[$at[2, "job_id"]]
      if (got == ref) equal++
      off += (got > ref ? got - ref : ref - got) / ref
      mine += got; his += ref
      begin = $at[2, "submit_s"]
      if (begin + got > end) end = begin + got
      if (begin + ref > theirEnd) theirEnd = begin + ref
      if (n == 1 || begin < first) first = begin
    }
    END {
      print "| given its decisions, philly 1 | here | Sia'\''s simulator |"
      print "|---|---|---|"
      printf "| jobs that complete in the same second | %d of %d, mean deviation %.3f %% | |\n", equal, n, 100 * off / n
      printf "| average JCT | %.2f s | %.2f s |\n", mine / n, his / n
      printf "| makespan | %d s | %d s |\n", end - first, theirEnd - first
    }' "$theirs.csv" "$scratch/jobs.csv"
  sed -n '/: job /d; s/^replay: \(.*\)/| rounds and jobs in them | \1 | |/p' "$scratch/log"
} | renew sia-compat
