#!/usr/bin/env bash
# sia-compat.sh: the decisions of Sia's own simulator imposed, and their consequences compared.
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
      print "| decisions of Sia imposed, philly 1 | Pacer | Sia'\''s simulator |"
      printf "| jobs that complete in the same second | %d of %d | - |\n", equal, n
      printf "| mean deviation of completion times | %.3f %% | - |\n", 100 * off / n
      printf "| average JCT | %.2f s | %.2f s |\n", mine / n, his / n
      printf "| makespan | %d s | %d s |\n", end - first, theirEnd - first
    }' "$theirs.csv" "$scratch/jobs.csv"
  sed -nE "$(printf '%s\n' \
    's/^replay: ([0-9]+ of [0-9]+) recorded rounds decided, ([0-9]+) .*, ([0-9]+) better .*/| recorded rounds decided | \1 | - |\n| rounds with a decision the policy could not make | \2 | - |\n| rounds with a decision better than the policy'"'"'s own | \3 | - |/p' \
    's/^replay: decided worse by ([0-9.]+) in all, ([0-9.]+) at most, by more than ([0-9.]+) in ([0-9]+) rounds.*/| objective lost to the recorded decisions, all rounds; worst round | \1; \2 | - |\n| rounds that lose more than \3 | \4 | - |/p' \
    's/^replay: of ([0-9]+) times a job held devices in a round ([0-9]+) trained as recorded, ([0-9]+) were as far.*/| job-rounds on devices | \1 | - |\n| of these, trained at the recorded batch | \2 | - |\n| of these, same progress | \3 | - |/p')" "$scratch/log"
} | renew sia-compat
