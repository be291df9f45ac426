package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/report"
	studies "github.com/pacer-ml/pacer/scheduler/study"
)

func sweepCommand() *cli.Command {
	return &cli.Command{
		Name:      "sweep",
		Usage:     "run a scheduling study: policies x loads x seeds x traces",
		ArgsUsage: "STUDY.yaml",
		Description: `As many runs at a time as there are cores (GOMAXPROCS). Every result is kept
as soon as there is one: the same command goes on after an interruption, and
repeats nothing whose inputs are the same. Means have 95 % intervals of
Student's t over the seeds; with one seed all policies see the same arrivals
and noise. Beside every result is how many times the best lower bound it is.

   pacer sweep bench/studies/backfill.yaml

docs/studies.md describes the file.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "`DIR` where results are kept (default: sweeps/NAME in --data)"},
			&cli.StringFlag{Name: "runs-out", Usage: "write one CSV row per run to `FILE`"},
			&cli.StringFlag{Name: "svg", Usage: "draw the mean JCTs over the loads, or all intervals where there are none, into `FILE`"},
			&cli.StringFlag{Name: "markdown", Usage: "write the rows into `FILE`, between its lines <!-- NAME --> and <!-- /NAME -->, NAME being the study's"},
		},
		Action: runSweep,
	}
}

// studySettings are the flags of simulate that a study may set.
var studySettings = []string{"truth", "unknown", "belief", "loss-noise", "start-cost", "costs", "resize-cost", "checkpoint-every",
	"failures", "node-sigma", "stragglers", "admission", "placement", "round", "score", "compat", "window", "load-scale"}

// sweep is a study with the simulations it is made of.
type sweep struct {
	studies.Study
	sims    [][]simulated // by workload and scheduler
	program string        // digest of this program
}

// simulated is a simulation with what decides it beside cluster, jobs and
// policy: see studies.Setup.
type simulated struct {
	study
	compat   bool // of another simulator's semantics
	identity []string
	// draw makes the jobs of a seed; nil = they are the same for all.
	draw func(seed uint64) ([]spec.Job, error)
}

func runSweep(c *cli.Context) (err error) {
	path, err := onePath(c, "STUDY.yaml")
	if err != nil {
		return err
	}
	s, err := newSweep(c, path)
	if err != nil {
		return err
	}
	runsOut, err := createOut(c.String("runs-out"))
	if err != nil {
		return fmt.Errorf("sweep: --runs-out: %w", err)
	}
	defer func() { err = errors.Join(err, runsOut.discard()) }()
	svgOut, err := createOut(c.String("svg"))
	if err != nil {
		return fmt.Errorf("sweep: --svg: %w", err)
	}
	defer func() { err = errors.Join(err, svgOut.discard()) }()
	if err := distinct(runsOut, svgOut); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	document := c.String("markdown")
	if document != "" {
		if err := hasPlace(document, s.Name); err != nil {
			return fmt.Errorf("sweep: --markdown: %w", err)
		}
	}
	outcomes, err := s.run(c)
	if err != nil {
		return err
	}
	if svgOut != nil {
		if err := svgOut.write(func(w io.Writer) error { return s.WriteSVG(w, s.Rows(outcomes)) }); err != nil {
			return err
		}
	}
	if runsOut != nil {
		if err := runsOut.write(func(w io.Writer) error { return s.writeRuns(w, outcomes) }); err != nil {
			return err
		}
	}
	if err := s.print(c, outcomes); err != nil {
		return err
	}
	if document != "" {
		return report.SpliceFile(document, []byte(s.Markdown(s.Rows(outcomes))), s.Name)
	}
	return nil
}

// maxStudyFile bounds a study file, in bytes: beyond it is another file.
const maxStudyFile = 1 << 20

// newSweep reads a study and everything it names, all that can be wrong with
// them first.
func newSweep(c *cli.Context, path string) (*sweep, error) {
	text, err := readSmall(path, maxStudyFile)
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	read, err := studies.Read(path, text, studySettings)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	s := &sweep{Study: read}
	if err := s.readSchedulers(); err != nil {
		return nil, err
	}
	if s.program, err = programDigest(); err != nil {
		return nil, err
	}
	for _, w := range s.unvaried() {
		fmt.Fprintf(c.App.ErrWriter, "warning: seeds change nothing of workload %s but what policies draw: set arrivals: poisson or noise\n", w)
	}
	return s, s.resolve(c)
}

// readSchedulers reads the files of schedulers. What one leaves out is as the study
// has it for all.
func (s *sweep) readSchedulers() error {
	for i := range s.Schedulers {
		p := &s.Schedulers[i]
		if p.File == "" {
			continue
		}
		settings, err := readSchedulerFile(p.File)
		if err != nil {
			return err
		}
		p.Policy = settings["policy"]
		delete(settings, "policy")
		maps.Copy(p.Settings, settings)
	}
	return nil
}

// unvaried returns the workloads that every seed runs alike under some scheduler,
// machines that fail or differ included.
func (s *sweep) unvaried() []string {
	for _, p := range s.Schedulers {
		settings := maps.Clone(s.Settings)
		maps.Copy(settings, p.Settings)
		if !drawnTrouble(settings) {
			return s.Unvaried()
		}
	}
	return nil
}

// readSmall reads a file of at most so many bytes.
func readSmall(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err // it names the file
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > most:
		return nil, usagef("%s is larger than %d KiB: more than such a file has", path, most>>10)
	}
	return text, nil
}

// resolve makes a simulation for every workload and scheduler. Those with equal
// settings share what was read for them.
func (s *sweep) resolve(c *cli.Context) error {
	for _, w := range s.Workloads {
		known := map[string]*simulated{}
		var sims []simulated
		for _, p := range s.Schedulers {
			settings := maps.Clone(s.Settings)
			maps.Copy(settings, p.Settings)
			key := fmt.Sprintf("%q", settingWords(settings))
			if known[key] == nil {
				base, err := s.simulation(c, w, p, settings)
				if err != nil {
					return fmt.Errorf("sweep: %s on %s: %w", p.Name, w.Name, err)
				}
				known[key] = base
			}
			own := *known[key]
			var err error
			if own.policies, err = policy.Parse(p.Policy); err != nil {
				return usagef("sweep: %w", err)
			}
			files, err := filesDigest(own.policies[0].Files())
			if err != nil {
				return err
			}
			own.identity = append(slices.Clone(own.identity), files...)
			sims = append(sims, own)
		}
		s.sims = append(s.sims, sims)
	}
	return nil
}

// settingWords writes settings as FLAG=VALUE, sorted.
func settingWords(settings map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		out = append(out, k+"="+settings[k])
	}
	return out
}

// simulation reads what pacer simulate would with these flags.
func (s *sweep) simulation(c *cli.Context, w studies.Workload, p studies.Scheduler, settings map[string]string) (*simulated, error) {
	flags := maps.Clone(settings)
	flags["workload"], flags["cluster"], flags["policy"] = w.Jobs, s.Cluster, p.Policy
	seeded := func(seed uint64) (*cli.Context, error) {
		flags := maps.Clone(flags)
		flags["seed"] = strconv.FormatUint(seed, 10)
		return simulateContext(c, flags)
	}
	ctx, err := seeded(s.Seeds[0])
	if err != nil {
		return nil, err
	}
	own, err := newStudy(ctx)
	if err != nil {
		return nil, err
	}
	for _, note := range own.notes {
		fmt.Fprintf(c.App.ErrWriter, "warning: %s: %s\n", w.Name, note)
	}
	var draw func(uint64) ([]spec.Job, error)
	if w.Drawn() {
		draw = func(seed uint64) ([]spec.Job, error) {
			ctx, err := seeded(seed)
			if err != nil {
				return nil, err
			}
			read, _, err := loadWorkload(ctx, w.Jobs)
			if err != nil {
				return nil, err
			}
			return cutWorkload(ctx, read.Jobs)
		}
	}
	digest, err := worldsDigest(c, own.truth.name, own.belief.name)
	return &simulated{study: *own, draw: draw, compat: settings["compat"] != "", identity: append(settingWords(settings), "program="+s.program,
		"truth="+own.truth.name, "belief="+own.belief.name, "start="+own.trouble.costsText, fmt.Sprintf("tables=%x", own.trouble.files), "worlds="+digest)}, err
}

// simulateContext is pacer simulate as called with flags below c.
func simulateContext(c *cli.Context, flags map[string]string) (*cli.Context, error) {
	set := flag.NewFlagSet("simulate", flag.ContinueOnError)
	for _, f := range append(simulateCommand().Flags, globalFlags()...) {
		if err := f.Apply(set); err != nil {
			return nil, err
		}
	}
	for name, value := range flags {
		if err := set.Set(name, value); err != nil {
			return nil, usagef("--%s %q: %w", name, value, err)
		}
	}
	return cli.NewContext(c.App, set, c), nil
}

// setup makes a run of the study ready.
func (s *sweep) setup(ctx context.Context, c studies.Cell) (studies.Setup, error) {
	own := s.sims[c.Workload][c.Scheduler]
	own.seed = c.Seed
	if own.draw != nil {
		var err error
		if own.jobs, err = own.draw(c.Seed); err == nil {
			own.jobs, err = own.prepare(ctx, own.jobs)
		}
		if err == nil {
			err = own.checkCosts()
		}
		if err != nil {
			return studies.Setup{}, err
		}
	}
	config, err := own.planned()[0].config(ctx)
	return studies.Setup{
		Config: config, Score: own.score, Choices: own.choices(), Identity: own.identity,
	}, err
}

// choices lists how jobs may run, nil where that cannot be listed: fitted truths
// know any plan, and other simulators' semantics are not bounded.
func (s *simulated) choices() studies.Choices {
	switch {
	case s.compat:
		return nil
	case s.truth.predictor == nil && s.truth.tables == nil: // durations
		return studies.AsRequested(s.cluster)
	case s.truth.served != nil:
		return studies.Served(s.cluster, s.truth.served.Configs())
	case s.truth.keys != nil:
		return studies.Listed(s.cluster, s.truth.keys)
	}
	return nil
}

// run runs what is not kept yet.
func (s *sweep) run(c *cli.Context) ([]studies.Outcome, error) {
	path := c.String("out")
	if path == "" {
		data, err := dataDir(c)
		if err != nil {
			return nil, err
		}
		path = filepath.Join(data, "sweeps", s.Name)
	}
	dir, err := studies.OpenDir(path)
	if err != nil {
		return nil, err
	}
	began, kept, done := time.Now(), 0, 0
	log := newProgress(c.App.ErrWriter, "sweep "+s.Name, len(s.Cells()))
	r := studies.Runner{Study: &s.Study, Dir: dir, Workers: runtime.GOMAXPROCS(0), Setup: s.setup, Progress: func(p studies.Progress) {
		if log.set(p.Done); p.Err == nil {
			done++
		}
		switch {
		case p.Kept:
			kept++
		case p.Err != nil:
			log.println(fmt.Sprintf("failed: %s: %v", s.Describe(p.Cell), p.Err))
		case log.bar == nil:
			fmt.Fprintf(c.App.ErrWriter, "sweep %s: %d of %d runs: %s\n", s.Name, p.Done, p.Total, s.Describe(p.Cell))
		}
	}}
	outcomes, err := r.Run(c.Context)
	log.finish()
	fmt.Fprintf(c.App.ErrWriter, "sweep %s: %d of %d runs in %s, %d of them from before, in %.1f s\n",
		s.Name, done, len(s.Cells()), path, kept, time.Since(began).Seconds())
	if err != nil {
		return nil, fmt.Errorf("sweep: the same command goes on: %w", err)
	}
	return outcomes, nil
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

// print writes the rows to standard output. What could not be run, or read, is
// on standard error by now, and in the exit code.
func (s *sweep) print(c *cli.Context, outcomes []studies.Outcome) error {
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
	table, err := csvOf(objects)
	if err != nil {
		return err
	}
	if err := emit(c, result{json: r, csv: table, table: func(w io.Writer) error { return s.writeTable(w, rows) }}); err != nil {
		return err
	}
	bad := 0
	for _, sims := range s.sims {
		bad += sims[0].bad
	}
	if r.Failed > 0 || bad > 0 {
		return &exitError{exitPartial, fmt.Errorf("sweep: %d of %d runs failed, %d rows of workloads could not be used, see above", r.Failed, r.Runs, bad)}
	}
	return nil
}

func (s *sweep) writeTable(w io.Writer, rows []studies.Row) error {
	t := s.Table(rows)
	t.Width = max(terminalWidth(w), 140)
	if err := t.Write(w); err != nil {
		return err
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
	table, err := csvOf(objects)
	if err != nil {
		return err
	}
	return csv.NewWriter(w).WriteAll(table)
}
