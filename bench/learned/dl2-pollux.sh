#!/usr/bin/env bash
# dl2-pollux.sh WORKLOAD POLICY.bin trains the policy dl2 for jobs of the networks that
# Pollux measured, on 16 nodes of 4 T4: a few minutes of CPU. It prints results of
# validation workloads. The policy is not shipped with Pacer, because it is made from
# Pollux's measurements.
#
# ones.sh and ones-trace.sh compare policies on other seeds.
# POLLUX is the directory with traces/ of petuum/adaptdl, branch osdi21-artifact,
# directory simulator, PACER the binary (default: pacer).
set -euo pipefail
: "${POLLUX:?the directory of traces/ of the simulator of petuum/adaptdl, branch osdi21-artifact}"
"${PACER:-pacer}" learn dl2 --workload "${1:?WORKLOAD}" --seed 101 --cluster 16x4xT4 --truth "goodput:$POLLUX" \
  --teacher pacer --set start-cost=30,resize-cost=1,slot=300,updates=200,rounds=4,watch=2,rate=0.003,hidden=64 \
  --set iterations=25,episodes=3,steps=32,own-rate=0.0003,discount=0.99,reward=waiting,entropy=0.002,explore=0,validation=3 \
  --out "${2:?POLICY.bin}"
