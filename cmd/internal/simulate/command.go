package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/scheduler/replay"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Command is pacer simulate.
func Command() *cli.Command {
	return &cli.Command{
		Name:        "simulate",
		Aliases:     []string{"sim"},
		Usage:       "run a workload on a simulated cluster under scheduling policies",
		Description: simulateHelp,
		Flags: slices.Concat(workloadFlags(), truthFlags(), []cli.Flag{
			&cli.StringFlag{Name: "substitute-model", Usage: "run jobs of models that a table of the truth does not have as `MODEL`", Category: "Speed of jobs"},
			&cli.StringFlag{Name: "loss-noise", Usage: "vary the training losses that jobs log by `SIGMA`; policy optimus learns from them", DefaultText: "0.02", Category: "Speed of jobs"},
		}, schedulerFlags(), failureFlags(), []cli.Flag{
			&cli.StringFlag{Name: "score", Usage: "count only job numbers `FIRST-LAST`, inclusive", DefaultText: "all", Category: "Output"},
			&cli.StringFlag{Name: "jobs-out", Usage: "write a row per job and policy to `FILE`: Parquet if it ends in .parquet, else CSV", Category: "Output"},
			&cli.StringFlag{Name: "events-out", Usage: "write a row per event (submitted, started, stopped, ...) to `FILE`: Parquet if it ends in .parquet, else CSV", Category: "Output"},
			&cli.StringFlag{Name: "html", Usage: "write a self-contained report to `FILE`", Category: "Output"},
			&cli.StringSliceFlag{Name: "explain", Usage: "print what happens to `JOB`, and why (repeatable)", Category: "Output"},
		}),
		Before: command.NoArgs,
		Action: runSimulate,
	}
}

func schedulerFlags() []cli.Flag {
	const category = "Scheduler"
	return []cli.Flag{
		&cli.StringFlag{Name: "policy", Aliases: []string{"p"}, Value: "fifo", Usage: "simulate `NAME[:key[=value]...]`, several separated by commas; see pacer ls policies", Category: category},
		&cli.StringFlag{Name: "scheduler", Usage: "read policy, admission, placement, round and compat from YAML `FILE`", Category: category},
		&cli.StringFlag{Name: "admission", Usage: "admit jobs by `NAME[:VALUE]`, see pacer ls admissions", DefaultText: "accept-all", Category: category},
		&cli.StringFlag{Name: "placement", Usage: "place jobs by `NAME`, see pacer ls placements", DefaultText: "packed", Category: category},
		&cli.StringFlag{Name: "round", Usage: "let policies decide every `SECONDS`", DefaultText: "whenever something happens", Category: category},
		&cli.StringFlag{Name: "compat", Usage: "reproduce another simulator's semantics: `NAME[:QUIRK=false...]`, see pacer ls compats", Category: category},
		&cli.StringFlag{Name: "replay", Usage: "replay `FILE`, a recording of pacer schedule --record, beside what happened; or, if it is CSV, impose the decisions recorded in it and compare everything else with the record", Category: category},
	}
}

func runSimulate(c *cli.Context) (err error) {
	s, err := experiment.New(c.Context, experimentOptions(c))
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	explain, err := explanations(c.StringSlice("explain"), s)
	if err != nil {
		return err
	}
	for i, doubt := range s.Doubts() {
		if i == experiment.MaxReported {
			fmt.Fprintf(c.App.ErrWriter, "warning: %d more values of the truth are doubtful\n", len(s.Doubts())-i)
			break
		}
		fmt.Fprintln(c.App.ErrWriter, "warning:", doubt)
	}
	out, err := createFiles(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.discard()) }()
	var finished atomic.Int64
	total := len(s.Jobs) * len(s.Runs())
	command.ShowProgress(c, console.Counting("simulate: %d of %d jobs finished", total, func() int { return int(finished.Load()) }))
	results, runErr := simulate(c.Context, s, out, experiment.Hooks{Explain: explain, Finished: func() { finished.Add(1) }}, c.App.ErrWriter)
	if interrupted := c.Context.Err() != nil; runErr != nil && (len(results) == 0 || !interrupted) {
		return runErr
	}
	if err := out.write(s, results); err != nil {
		return errors.Join(runErr, err)
	}
	if err := printResults(c, s, results, explain); err != nil {
		return errors.Join(runErr, err)
	}
	warnUnfinished(c.App.ErrWriter, results, s.Score)
	switch {
	case runErr != nil:
		return fail.Partialf("simulate: %s of %d done: %w", spec.Count(len(results), "run"), s.Results(), runErr)
	case failedRuns(results) > 0:
		return fail.Partialf("simulate: %d of %s failed, see above", failedRuns(results), spec.Count(len(results), "run"))
	case s.Bad > 0:
		return fail.Partialf("simulate: %d rows of %s could not be used, see above", s.Bad, s.Workload)
	}
	return nil
}

// failedRuns counts the policies that could not run the workload.
func failedRuns(results []*sim.Result) (n int) {
	for _, r := range results {
		if r.Failed != "" {
			n++
		}
	}
	return n
}

// warnUnfinished names the policies under which scored jobs did not finish. It prints last,
// below the table: their figures are of fewer jobs.
func warnUnfinished(w io.Writer, results []*sim.Result, score report.Score) {
	for _, r := range results {
		if s := report.Summarize(r, score); s.Finished < s.Jobs {
			fmt.Fprintf(w, "WARNING: %d of %s did not finish under %s: the figures of %[3]s are of the other %d\n", s.Jobs-s.Finished, spec.Count(s.Jobs, "job"), r.Policy, s.Finished)
		}
	}
}

// explanations collects the jobs of --explain, nil for none.
func explanations(ids []string, s *experiment.Simulation) (*report.Explanations, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out := &report.Explanations{}
	for _, id := range ids {
		if slices.Contains(out.Jobs, spec.JobID(id)) {
			return nil, fail.Usagef("simulate: --explain %q is given twice", id)
		}
		if !slices.ContainsFunc(s.Jobs, func(j spec.Job) bool { return j.ID == spec.JobID(id) }) {
			var known []string
			for i := range s.Jobs {
				known = append(known, string(s.Jobs[i].ID))
			}
			return nil, fail.Usagef("simulate: --explain %q: no such job among the %s of %s, nearest: %s",
				id, spec.Count(len(known), "job"), s.Workload, strings.Join(named.Nearest(id, known, 3), ", "))
		}
		out.Jobs = append(out.Jobs, spec.JobID(id))
	}
	return out, nil
}

// simulate runs every policy in turn. If ctx ends, it returns the results so far with the
// error.
func simulate(ctx context.Context, s *experiment.Simulation, files *outputs, h experiment.Hooks, log io.Writer) ([]*sim.Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := files.begin(stop); err != nil {
		return nil, err
	}
	h.Observe, h.Replayed = files.observer, func(r replay.Report) { writeReplay(log, r) }
	h.Done = func(r *sim.Result) {
		if files.ran(r); r.Failed != "" {
			fmt.Fprintf(log, "failed: %s: %s\n", r.Policy, r.Failed)
			return
		}
		if r.Elapsed == 0 {
			return // it is recorded
		}
		fmt.Fprintf(log, "simulate: %s done in %.2f s\n", r.Policy, r.Elapsed.Seconds())
	}
	results, err := s.Run(ctx, h)
	if err != nil {
		err = errors.Join(files.failed(), fmt.Errorf("simulate: %w", err))
	}
	return results, err
}

// Page runs every policy of s in turn and writes the HTML report to a file.
func Page(ctx context.Context, s *experiment.Simulation, path, version string) (_ []*sim.Result, err error) {
	html, err := console.Create(path)
	if err != nil {
		return nil, err
	}
	out := &outputs{html: html, htmlPath: path, version: version, log: io.Discard}
	defer func() { err = errors.Join(err, out.discard()) }()
	results, err := simulate(ctx, s, out, experiment.Hooks{}, io.Discard)
	if err != nil {
		return nil, err
	}
	return results, out.write(s, results)
}

const simulateHelp = `The truth is the real speed of jobs, the belief the estimate that policies use.
With --truth rubick:measured the truth is the measured table in the store: only
measured pairs of plan and shape (devices per node) may be granted; policies see
the pairs, but not their speeds. Example:

   pacer simulate --workload workload-base.csv --cluster 8x8xA800 \
       --policy fifo,fifo-backfill,rubick --truth rubick:measured

A policy that cannot run the workload has no figures; the others have, and the exit
code is 4. On Ctrl-C the results of finished policies are printed, with that code too.

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

With --maintenance nodes are down at times that policies know. With --spot they
are taken back after a notice. Jobs on them save their progress, if the notice is
as long as their checkpoint, and count as evicted; no job starts on a node that
goes down before the start is paid:

   pacer simulate --maintenance 0-3@6h/8h --spot H100=8h/30m:notice=120 ...

Failures follow from --seed and the node's number, whatever the policy; a gang
runs at the speed of its slowest node, and policies do not see these speeds.`
