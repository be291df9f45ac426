package simulate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/scheduler/report"
	studies "github.com/pacer-ml/pacer/scheduler/study"
)

// SweepCommand is pacer sweep.
func SweepCommand() *cli.Command {
	return &cli.Command{
		Name:      "sweep",
		Usage:     "run a scheduling study: policies x loads x seeds x traces",
		ArgsUsage: "STUDY.yaml",
		Description: `Runs as many simulations at a time as there are cores (GOMAXPROCS) and keeps
every result as soon as it is done. The same command resumes after an
interruption and repeats no run with the same inputs; on Ctrl-C the finished
runs are printed, with exit code 4. Means have 95 % intervals of Student's t
over the seeds; with one seed all policies see the same arrivals and noise.
Each result is also given as a multiple of the best lower bound.

   pacer sweep bench/studies/backfill.yaml

With --on the runs are tasks of a job of a cluster, over a directory that its nodes
share. The same command waits for that job if it was interrupted, and prints what a
run on this machine prints.

   pacer sweep --on slurm --tasks 16 --out DIR bench/studies/backfill.yaml

docs/guides/studies.md describes the file.`,
		Flags: append(clusterFlags(), []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "keep results in `DIR`", DefaultText: "sweeps/NAME in --data", Category: command.CategoryOutput},
			&cli.StringFlag{Name: "runs-out", Usage: "write one CSV row per run to `FILE`", Category: command.CategoryOutput},
			&cli.StringFlag{Name: "svg", Usage: "draw the mean JCTs over the loads, or all intervals without loads, into `FILE`", Category: command.CategoryOutput},
			&cli.StringFlag{Name: "markdown", Usage: "write the rows into `FILE`, between its lines <!-- NAME --> and <!-- /NAME -->, NAME being the study's", Category: command.CategoryOutput},
		}...),
		Action: runSweep,
	}
}

func runSweep(c *cli.Context) (err error) {
	path, err := command.OnePath(c, "STUDY.yaml")
	if err != nil {
		return err
	}
	opened, err := experiment.OpenSweep(c.Context, path, experimentOptions(c))
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	s := &sweep{Sweep: opened, path: path}
	if s.dir, err = s.outDir(c); err != nil {
		return err
	}
	if c.IsSet("shard") {
		return s.runShard(c)
	}
	document := c.String("markdown")
	if document != "" {
		if err := report.CanSplice(document, s.Name); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	files, err := command.OpenFiles(c, "runs-out", "svg")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Discard()) }()
	if c.IsSet("on") {
		if err := s.runOn(c); err != nil {
			return err
		}
	}
	if err := s.run(c); err != nil {
		return err
	}
	if err := s.writeFiles(files); err != nil {
		return err
	}
	err = s.print(c)
	if err == nil && document != "" {
		err = report.SpliceFile(document, []byte(s.Markdown(s.Rows(s.outcomes))), s.Name)
	}
	return err
}

// writeFiles completes the figure and the table of runs.
func (s *sweep) writeFiles(files command.Files) error {
	if f := files["svg"]; f != nil {
		if err := f.Write(func(w io.Writer) error { return s.WriteSVG(w, s.Rows(s.outcomes)) }); err != nil {
			return err
		}
	}
	if f := files["runs-out"]; f != nil {
		return f.Write(func(w io.Writer) error { return s.writeRuns(w, s.outcomes) })
	}
	return nil
}

// sweep is a study with its results.
type sweep struct {
	*experiment.Sweep
	path     string // of the study
	dir      string // of the results
	shard    studies.Shard
	outcomes []studies.Outcome
	stopped  error // why not every run was tried, nil if all were
}

// outDir returns the directory of the results.
func (s *sweep) outDir(c *cli.Context) (string, error) {
	if path := c.String("out"); path != "" {
		return path, nil
	}
	data, err := datadir.Of(c).Path()
	return filepath.Join(data, "sweeps", s.Name), err
}

// run runs what is not kept yet. After an interruption the runs that are done remain.
func (s *sweep) run(c *cli.Context) error {
	dir, err := studies.OpenDir(s.dir)
	if err != nil {
		return err
	}
	began, kept, done := time.Now(), 0, 0
	log := console.NewBar(c.App.ErrWriter, "sweep "+s.Name, len(s.Cells()))
	r := studies.Runner{Study: &s.Study, Dir: dir, Shard: s.shard, Workers: runtime.GOMAXPROCS(0), Setup: s.Setup, Progress: func(p studies.Progress) {
		if log.Set(p.Done); p.Err == nil {
			done++
		}
		switch {
		case p.Kept:
			kept++
		case p.Err != nil:
			log.Println(fmt.Sprintf("failed: %s: %v", s.Describe(p.Cell), p.Err))
		case !log.Drawn():
			fmt.Fprintf(c.App.ErrWriter, "sweep %s: %d of %d runs: %s\n", s.Name, p.Done, p.Total, s.Describe(p.Cell))
		}
	}}
	s.outcomes, err = r.Run(c.Context)
	log.Finish()
	fmt.Fprintf(c.App.ErrWriter, "sweep %s: %d of %d runs in %s, %d of them from before, in %.1f s\n",
		s.Name, done, len(s.Cells()), s.dir, kept, time.Since(began).Seconds())
	if err != nil {
		err = fmt.Errorf("sweep: the same command goes on: %w", err)
	}
	if err == nil || c.Context.Err() == nil || done == 0 {
		return err
	}
	s.stopped = err
	for i, cell := range s.Cells() {
		if o := &s.outcomes[i]; o.Err == nil && o.Record.Key == "" {
			o.Cell, o.Err = cell, c.Context.Err()
		}
	}
	return nil
}

// sweepResult is the JSON of pacer sweep.
type sweepResult struct {
	Study      string        `json:"study"`
	Confidence float64       `json:"confidence"`
	Intervals  string        `json:"intervals"`
	Baseline   string        `json:"baseline"`
	Runs       int           `json:"runs"`
	Failed     int           `json:"failed"`
	Rows       []studies.Row `json:"rows"`
	// Overall is of several workloads.
	Overall []studies.Whole `json:"overall,omitempty"`
}

const intervalNote = "Student's t over the seeds; differences from the baseline paired by seed"

// print writes the rows to standard output. Runs and rows that failed are on standard
// error already; they decide the exit code.
func (s *sweep) print(c *cli.Context) error {
	outcomes := s.outcomes
	rows := s.Rows(outcomes)
	r := sweepResult{Study: s.Name, Confidence: s.Confidence, Intervals: intervalNote, Baseline: s.Baseline, Runs: len(outcomes), Rows: rows, Overall: s.Overall(rows)}
	var first error
	for _, o := range outcomes {
		if o.Err != nil {
			r.Failed++
			if first == nil {
				first = o.Err
			}
		}
	}
	if r.Failed == len(outcomes) {
		return fmt.Errorf("sweep: no run was possible: %w", first)
	}
	objects := make([]any, len(rows))
	for i := range rows {
		objects[i] = &rows[i]
	}
	table, err := console.CSV(objects)
	if err != nil {
		return err
	}
	if err := command.Print(c, console.Result{JSON: r, CSV: table, Table: func(w io.Writer) error { return s.writeTable(w, rows) }}); err != nil {
		return err
	}
	if s.stopped != nil {
		return fail.WithCode(fail.Partial, s.stopped)
	}
	if bad := s.Bad(); r.Failed > 0 || bad > 0 {
		return fail.Partialf("sweep: %d of %d runs failed, %d rows of workloads could not be used, see above", r.Failed, r.Runs, bad)
	}
	return nil
}

func (s *sweep) writeTable(w io.Writer, rows []studies.Row) error {
	t := s.Table(rows)
	t.Width = max(console.Width(w), 140)
	if err := t.Write(w); err != nil {
		return err
	}
	for _, f := range s.Failures(rows) {
		fmt.Fprintf(w, "no result: %s\n", f)
	}
	note := fmt.Sprintf("\n%d seeds, baseline %s", len(s.Seeds), s.Baseline)
	if slices.ContainsFunc(rows, func(r studies.Row) bool { return r.ComparedWith != s.Baseline }) {
		note = fmt.Sprintf("\n%d seeds, each against its own baseline", len(s.Seeds))
	}
	if len(s.Seeds) > 1 {
		note += fmt.Sprintf("; ± half of the %g %% interval, %s", 100*s.Confidence, intervalNote)
	}
	if slices.ContainsFunc(rows, func(r studies.Row) bool { return r.OverBound.AvgJCT.Mean.Defined() }) {
		note += "; x bound: times the best lower bound"
	}
	if slices.ContainsFunc(rows, func(r studies.Row) bool { return r.LateBackfill.Jobs.Mean > 0 }) {
		note += "; late: guaranteed jobs per run that end more than a minute later than under fifo-backfill, or never"
	}
	_, err := fmt.Fprintln(w, note)
	return err
}

// sweepRun is a row of --runs-out.
type sweepRun struct {
	Workload  string        `json:"workload"`
	Load      report.Number `json:"load"`
	Scheduler string        `json:"scheduler"`
	Seed      uint64        `json:"seed"`
	Error     string        `json:"error"`
	report.Summary
	studies.Bounds
}

func (s *sweep) writeRuns(w io.Writer, outcomes []studies.Outcome) error {
	objects := make([]any, len(outcomes))
	for i, o := range outcomes {
		r := sweepRun{
			Workload: s.Workloads[o.Cell.Workload].Name, Load: report.Number(o.Cell.Load), Scheduler: s.Schedulers[o.Cell.Scheduler].Name,
			Seed: o.Cell.Seed, Summary: o.Record.Summary, Bounds: o.Record.Bounds,
		}
		if o.Cell.Load == 0 {
			r.Load = report.Undefined()
		}
		if o.Err != nil {
			r.Error = o.Err.Error()
		}
		objects[i] = r
	}
	table, err := console.CSV(objects)
	if err != nil {
		return err
	}
	return csv.NewWriter(w).WriteAll(table)
}
