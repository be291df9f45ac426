#!/usr/bin/env bash
# dl2.sh trains the policy dl2 that comes with Pacer, for jobs like those of pacer demo,
# and writes it to scheduler/policy/dl2/dl2.bin: five minutes of CPU. What it prints is of
# workloads that nothing is learnt from. PACER is the binary (default: pacer).
#
# The file that is there is of commit 2e191f7: the learner has changed since, and makes
# another one, not yet compared with it.
set -euo pipefail
cd "$(dirname "$0")/../.."
models=BERT-large+GPT2-XL+Llama2-7B+Llama3-8B+Llama2-13B
"${PACER:-pacer}" learn dl2 --workload "synthetic:jobs=120,models=$models" --cluster 8x8xH100 --truth fitted:analytic \
  --teacher optimus-oracle --set start-cost=60,slot=300,updates=200,rounds=4,watch=4,rate=0.003,hidden=96 \
  --set iterations=60,episodes=6,steps=32,own-rate=0.0003,discount=0.99,reward=waiting,entropy=0.002,validation=6 \
  --compact --out scheduler/policy/dl2/dl2.bin
