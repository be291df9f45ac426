package main

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
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/scheduler/replay"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

func simulateCommand() *cli.Command {
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
		&cli.StringFlag{Name: "replay", Usage: "impose the decisions recorded in `ROUNDS.csv` and compare everything else with the record", Category: category},
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
	for i, odd := range s.Doubts() {
		if i == maxReported {
			fmt.Fprintf(c.App.ErrWriter, "warning: %d more values of the truth are doubtful\n", len(s.Doubts())-i)
			break
		}
		fmt.Fprintln(c.App.ErrWriter, "warning:", odd)
	}
	out, err := createSimulateFiles(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.discard()) }()
	var finished atomic.Int64
	total := len(s.Jobs) * len(s.Runs())
	command.ShowProgress(c, func() string { return fmt.Sprintf("simulate: %d of %d jobs finished", finished.Load(), total) })
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
		return fail.Partialf("simulate: %s of %d done: %w", spec.Count(len(results), "run"), len(s.Runs()), runErr)
	case s.Bad > 0:
		return fail.Partialf("simulate: %d rows of %s could not be used, see above", s.Bad, s.Workload)
	}
	return nil
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

// simulate runs every policy in turn. If one fails or ctx ends, it returns the results so
// far with the error.
func simulate(ctx context.Context, s *experiment.Simulation, files *simulateFiles, h experiment.Hooks, log io.Writer) ([]*sim.Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := files.begin(stop); err != nil {
		return nil, err
	}
	h.Observe, h.Replayed = files.observer, func(r replay.Report) { writeReplay(log, r) }
	h.Done = func(ctx context.Context, c sim.Config, r *sim.Result) {
		files.ran(ctx, c, r)
		fmt.Fprintf(log, "simulate: %s done in %.2f s\n", r.Policy, r.Elapsed.Seconds())
	}
	results, err := s.Run(ctx, h)
	if err != nil {
		err = errors.Join(files.failed(), fmt.Errorf("simulate: %w", err))
	}
	return results, err
}
