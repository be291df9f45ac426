package main

const simulateHelp = `The truth is the real speed of jobs, the belief the estimate that policies use.
With --truth rubick:measured the truth is the measured table in the store: only
measured pairs of plan and shape (devices per node) may be granted; policies see
the pairs, but not their speeds. Example:

   pacer simulate --workload workload-base.csv --cluster 8x8xA800 \
       --policy fifo,fifo-backfill,rubick --truth rubick:measured

On Ctrl-C the results of finished policies are printed, with exit code 4.

Workloads:  csv (job_id,submit_s,gpus,duration_s[,model,plan,...]), rubick,
            gavel, gavel-trace, pollux, sia, blox, philly, philly-csv, acme,
            helios, pai2020, pai2023, alibaba-spot, tiresias, dl2; guessed,
            or named as FILE:FORMAT; one of several traces in a file as
            FILE:dl2=CONFIG/TRACE; or made from --seed, as
            synthetic:jobs=1000,per-hour=40,arrivals=bursty,
            synthetic:models=Llama2-7B+GPT-2 XL, which train these,
            synthetic:fit=FILE, like those of a trace,
            synthetic:dl2=small,arrivals=poisson, with parameter servers, or
            synthetic:ones=400,gap-s=30, like that of ONES, with the networks
            that Pollux measured
Clusters:   8x8xA800 (nodes x devices x type), 6x4xT4,2x8xA100-40GB,
            48x2xGTX1080Ti/8cpus, v100=36,p100=36 (one device per node), or
            a YAML file
Truths:     duration, or duration:A100=2,V100=1 on types of different
            speeds; rubick:measured, rubick:nearest, gavel:FILE,
            goodput:DIR (a clone of petuum/adaptdl, branch osdi21-artifact,
            or siasosp23/artifacts), dl2:PATH (of ps_speed.csv, jobs with
            parameter servers), fitted:FAMILY; beliefs also: perfect;
            pooled, with --compat sia: jobs of one model share what they
            observe; and online:FAMILY[:points=8][:noise=0][:after=10]
            [:every=0], which is fitted to so many stored rows of each model
            at first, and again to the step times of running jobs; each
            policy then runs a second time with perfect belief, and the
            effect of the prediction error is shown
` + failuresHelp

const failuresHelp = `
Costs: a start costs --start-cost. With --costs FILE.csv it costs launch, restore
except for the first start, the checkpoint of a stopped or moved job, and reshard
if the plan changed; in seconds by model, * for other models:

   model,launch_s,checkpoint_s,restore_s,reshard_s
   llama7b,40,25,30,15
   *,20,5,5,0

With --resize-cost a running job that keeps devices on one of its nodes is not
restarted to change its number of devices: its processes stay and send their
state to the new ones. A stopped job restarts.

--costs state takes 12 to 14 bytes a parameter through storage of 2 GB/s a node
(gbytes=2) and 30 s for all else (restart=30), as pacer plan does for moves.

Failures: a node that goes down stops its jobs. They lose the work since their
last checkpoint and wait for devices. A file gives the times, nodes from 0, an
empty up_s for ever:

   node,down_s,up_s
   3,86400,90000

Failures follow from --seed and the node's number, whatever the policy; a gang
runs at the speed of its slowest node, and policies do not see these speeds.`
