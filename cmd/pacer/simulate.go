package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/loss"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/replay"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

func simulateCommand() *cli.Command {
	return &cli.Command{
		Name:    "simulate",
		Aliases: []string{"sim"},
		Usage:   "run a workload on a simulated cluster under scheduling policies",
		Description: `The truth says how fast a job really runs, the belief is what policies are
told; they are separate. With --truth rubick:measured the truth is the measured
table in the store: only (plan, placement) pairs that were measured may be
granted, and policies see which, never how fast. Example:

   pacer simulate --workload workload-base.csv --cluster 8x8xA800 \
       --policy fifo,fifo-backfill,rubick --truth rubick:measured

Workloads:  csv (job_id,submit_s,gpus,duration_s[,model,plan,...]), rubick,
            gavel, gavel-trace, pollux, sia, blox, philly, philly-csv, acme,
            helios, pai2020, pai2023, alibaba-spot, tiresias, dl2; guessed,
            or named as FILE:FORMAT; one of several traces in a file as
            FILE:dl2=CONFIG/TRACE; or made from --seed, as
            synthetic:jobs=1000,per-hour=40,arrivals=bursty,
            synthetic:models=Llama2-7B+GPT-2 XL, which train these,
            synthetic:fit=FILE, like those of a trace,
            synthetic:dl2=small,arrivals=poisson, with parameter servers, or
            synthetic:ones=400,gap-s=30, like that of ONES as far as Pollux
            measured its networks
Clusters:   8x8xA800 (nodes x devices x type), 6x4xT4,2x8xA100-40GB,
            48x2xGTX1080Ti/8cpus, v100=36,p100=36 (one device per node), or
            a YAML file
Truths:     duration, or duration:A100=2,V100=1 on types of different
            speeds; rubick:measured, rubick:nearest, gavel:FILE,
            goodput:DIR (a clone of petuum/adaptdl, branch osdi21-artifact,
            or siasosp23/artifacts), dl2:PATH (of ps_speed.csv, jobs with
            parameter servers), fitted:FAMILY; beliefs also: perfect;
            pooled, with --compat sia: jobs of one model know what any has
            seen; and online:FAMILY[:points=8][:noise=0][:after=10]
            [:every=0], which is fitted to so many stored rows of each model
            at first, and anew to the step times seen of running jobs; each
            policy is then run a second time with perfect belief, and what
            not knowing costs shown
` + troubleHelp,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "workload", Aliases: []string{"w"}, Usage: "`FILE[:FORMAT]` of jobs"},
			windowFlag,
			loadScaleFlag,
			&cli.StringFlag{Name: "cluster", Usage: "`SPEC` of the machines, or a YAML file"},
			&cli.StringFlag{Name: "policy", Aliases: []string{"p"}, Value: "fifo", Usage: "`NAME[:key[=value]...]`, several separated by commas; see pacer ls policies"},
			&cli.StringFlag{Name: "scheduler", Usage: "YAML `FILE` that says what --policy, --admission, --placement, --round and --compat would"},
			&cli.StringFlag{Name: "truth", Usage: "`TRUTH` (default: rubick:measured for rubick workloads, else duration)"},
			&cli.StringFlag{Name: "unknown", Usage: "run jobs of models a table of the truth does not know as `MODEL`"},
			&cli.StringFlag{Name: "belief", Usage: "`BELIEF` of the policies (default: fitted:rubick with a rubick: truth, else perfect)"},
			&cli.StringFlag{Name: "loss-noise", Usage: "`SIGMA` of the training losses that jobs log, of which policy optimus learns when they end (default: 0.02)"},
		}, troubleFlags, []cli.Flag{
			&cli.StringFlag{Name: "admission", Usage: "`NAME[:VALUE]` of the admission rule, see pacer ls admissions"},
			&cli.StringFlag{Name: "placement", Usage: "`NAME` of the placer, see pacer ls placements"},
			&cli.StringFlag{Name: "score", Usage: "`FIRST-LAST` job numbers that count, inclusive (default: all)"},
			&cli.StringFlag{Name: "round", Usage: "let policies decide only every so many `SECONDS` (default: whenever something happens)"},
			&cli.StringFlag{Name: "compat", Usage: "reproduce another simulator's semantics: `NAME[:QUIRK=false...]`, see pacer ls compats"},
			&cli.StringFlag{Name: "replay", Usage: "impose the decisions recorded in `ROUNDS.csv` and compare everything else with the record"},
			&cli.StringFlag{Name: "jobs-out", Usage: "write a row per job and policy to `FILE`: Parquet if it ends in .parquet, else CSV"},
			&cli.StringFlag{Name: "events-out", Usage: "write a row per event (submitted, started, stopped, ...) to `FILE`: Parquet if it ends in .parquet, else CSV"},
			&cli.StringFlag{Name: "html", Usage: "write a self-contained report to `FILE`"},
			&cli.StringSliceFlag{Name: "explain", Usage: "say what happens to `JOB`, and why, after the figures (repeatable)"},
		}),
		Before: noArgs,
		Action: runSimulate,
	}
}

// study is a simulation as asked for.
type study struct {
	workload string
	jobs     []spec.Job
	bad      int // rows of the workload that could not be used
	cluster  spec.Cluster
	policies []policy.Spec
	truth    world
	belief   world
	perfect  world    // what a belief that learns is compared with
	pooled   bool     // what jobs with models of their own have seen is known to all of their model
	unknown  string   // the model that jobs of unknown ones are run as, "" = none is
	notes    []string // what was done to the jobs, for the results
	trouble  trouble
	parts    composition
	score    report.Score
	replay   replay.Rounds // to impose, nil = the policies decide
	seed     uint64
	// lossNoise is the deviation of ln(loss) of what jobs log of their training.
	lossNoise float64
	explain   *report.Explanations // nil = nothing is to be explained
}

func runSimulate(c *cli.Context) (err error) {
	if err := checkOutput(c); err != nil {
		return err
	}
	s, err := newStudy(c)
	if err != nil {
		return err
	}
	for i, odd := range s.truth.doubts {
		if i == maxReported {
			fmt.Fprintf(c.App.ErrWriter, "warning: %d more values of the truth are doubtful\n", len(s.truth.doubts)-i)
			break
		}
		fmt.Fprintln(c.App.ErrWriter, "warning:", odd)
	}
	out, err := createSimulateFiles(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.discard()) }()
	results, err := s.run(c.Context, out, c.App.ErrWriter)
	if err != nil {
		return err
	}
	if err := out.write(s, results); err != nil {
		return err
	}
	if err := s.print(c, results); err != nil {
		return err
	}
	warnLeft(c.App.ErrWriter, results, s.score)
	if s.bad > 0 {
		return &exitError{exitPartial, fmt.Errorf("simulate: %d rows of %s could not be used, see above", s.bad, s.workload)}
	}
	return nil
}

// warnLeft says last, below the table, under which policies jobs that count did not
// finish: their figures are of fewer jobs than those beside them.
func warnLeft(w io.Writer, results []*sim.Result, score report.Score) {
	for _, r := range results {
		if s := report.Summarize(r, score); s.Finished < s.Jobs {
			fmt.Fprintf(w, "WARNING: %d of %s did not finish under %s: the figures of %[3]s are of the other %d\n", s.Jobs-s.Finished, spec.Count(s.Jobs, "job"), r.Policy, s.Finished)
		}
	}
}

// newStudy reads the flags, everything that can be wrong with them first.
func newStudy(c *cli.Context) (*study, error) {
	s := &study{seed: seed(c), unknown: c.String("unknown")}
	for _, f := range []string{"workload", "cluster"} {
		if c.String(f) == "" {
			return nil, usagef("simulate: --%s is missing", f)
		}
	}
	err := readScheduler(c)
	if err != nil {
		return nil, err
	}
	if s.parts, err = readComposition(c); err != nil {
		return nil, err
	}
	if s.policies, err = policy.Parse(c.String("policy")); err != nil {
		return nil, usagef("simulate: %w", err)
	}
	if err = s.parts.has(s.policies); err != nil {
		return nil, err
	}
	if s.lossNoise, err = readLossNoise(c); err != nil {
		return nil, err
	}
	if s.score, err = report.ParseScore(c.String("score")); err != nil {
		return nil, usagef("simulate: %w", err)
	}
	if s.cluster, err = readCluster(c.String("cluster")); err != nil {
		return nil, err
	}
	format, err := s.readWorkload(c)
	if err != nil {
		return nil, err
	}
	if err := s.askWhy(c.StringSlice("explain")); err != nil {
		return nil, err
	}
	if err := s.readReplay(c.String("replay")); err != nil {
		return nil, err
	}
	return s, s.resolveWorlds(c, format)
}

// askWhy reads the jobs to be explained.
func (s *study) askWhy(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	s.explain = &report.Explanations{}
	for _, id := range ids {
		if slices.Contains(s.explain.Jobs, spec.JobID(id)) {
			return usagef("simulate: --explain %s is given twice", id)
		}
		if !slices.ContainsFunc(s.jobs, func(j spec.Job) bool { return j.ID == spec.JobID(id) }) {
			var known []string
			for i := range s.jobs {
				known = append(known, string(s.jobs[i].ID))
			}
			return &exitError{exitNoAnswer, fmt.Errorf("simulate: --explain %s: no such job among the %s of %s, nearest: %s",
				id, spec.Count(len(known), "job"), s.workload, strings.Join(named.Nearest(id, known, 3), ", "))}
		}
		s.explain.Jobs = append(s.explain.Jobs, spec.JobID(id))
	}
	return nil
}

// readLossNoise reads --loss-noise.
func readLossNoise(c *cli.Context) (float64, error) {
	text := cmp.Or(c.String("loss-noise"), "0.02")
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, usagef("simulate: --loss-noise %q is not a number in [0, 1]", text)
	}
	return v, nil
}

// notBuilt says that a reserved name is known but not there yet, or that a name
// is unknown.
func notBuilt(what, name string, built []string, reserved ...string) error {
	if slices.Contains(reserved, name) {
		return usagef("simulate: %s %s is not built yet", what, name)
	}
	if len(built) == 0 {
		return usagef("simulate: %s %q is unknown; none is built yet", what, name)
	}
	return usagef("simulate: %s %q is unknown, want one of %s", what, name, strings.Join(built, ", "))
}

// readCluster reads a cluster spec, or the YAML file it names.
func readCluster(s string) (spec.Cluster, error) {
	ext := strings.ToLower(filepath.Ext(s))
	if ext != ".yaml" && ext != ".yml" {
		cl, err := catalog.Cluster(s)
		var unknown *catalog.UnknownError
		if err != nil && !errors.As(err, &unknown) {
			return cl, usagef("simulate: %w", err)
		}
		return cl, err
	}
	f, err := os.Open(s)
	if err != nil {
		return spec.Cluster{}, err
	}
	defer f.Close()
	return catalog.ClusterYAML(f, s)
}

// readWorkload reads FILE[:FORMAT] and reports rows that cannot be used. It
// returns the format.
func (s *study) readWorkload(c *cli.Context) (format string, err error) {
	w, path, err := loadWorkload(c, c.String("workload"))
	if err != nil {
		return "", err
	}
	for _, odd := range w.Warnings {
		fmt.Fprintln(c.App.ErrWriter, "warning:", odd)
	}
	for i, e := range w.Bad {
		if i == maxReported {
			fmt.Fprintf(c.App.ErrWriter, "skipped: %d more rows\n", len(w.Bad)-i)
			break
		}
		fmt.Fprintln(c.App.ErrWriter, "skipped:", e)
	}
	if len(w.Jobs) == 0 {
		return "", fmt.Errorf("simulate: %s holds no job that can be run", path)
	}
	if w.Jobs, err = cutWorkload(c, w.Jobs); err != nil {
		return "", err
	}
	s.workload, s.jobs, s.bad = path, w.Jobs, len(w.Bad)
	if !slices.ContainsFunc(w.Jobs, func(j spec.Job) bool { return s.score.Has(j.ID) }) {
		return "", usagef("simulate: no job of %s is among --score %s", path, s.score)
	}
	return w.Format, nil
}

// splitFormat splits FILE:FORMAT; a colon inside a path that exists as a whole
// belongs to the path.
func splitFormat(arg string) (path, format string) {
	if _, err := os.Stat(arg); err == nil {
		return arg, ""
	}
	if i := strings.LastIndexByte(arg, ':'); i > 0 {
		return arg[:i], arg[i+1:]
	}
	return arg, ""
}

// run simulates every policy in turn.
func (s *study) run(ctx context.Context, files *simulateFiles, log io.Writer) ([]*sim.Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := files.begin(stop); err != nil {
		return nil, err
	}
	var out []*sim.Result
	for _, p := range s.planned() {
		config, err := p.config(ctx)
		if err != nil {
			return nil, err
		}
		config.Observe = files.observer(config)
		if s.explain != nil {
			config.Explain = s.explain.Explain(config.PolicyName)
		}
		r, err := sim.Run(ctx, config)
		if err != nil {
			return nil, errors.Join(files.failed(), err)
		}
		r.Warnings = slices.Concat(s.notes, r.Warnings)
		if p, ok := config.Policy.(*replay.Policy); ok {
			writeReplay(log, p.Report())
		}
		files.ran(ctx, config, r)
		fmt.Fprintf(log, "simulate: %s done in %.2f s\n", r.Policy, r.Elapsed.Seconds())
		out = append(out, r)
	}
	return out, nil
}

// planned is a run to come.
type planned struct {
	*study
	policy policy.Spec
	belief world
	name   string
}

// planned are the runs of the policies, with a belief that learns each followed by
// the one to compare it with.
func (s *study) planned() (out []planned) {
	for _, p := range s.policies {
		out = append(out, planned{s, p, s.belief, p.String()})
		if s.belief.learning != nil {
			out = append(out, planned{s, p, s.perfect, report.PerfectName(p.String())})
		}
	}
	return out
}

// config is the run. Runs share nothing that one could change.
func (p *planned) config(ctx context.Context) (sim.Config, error) {
	f, err := p.frame(ctx)
	if err != nil {
		return f.Config, err
	}
	if f.Policy, err = policy.New(p.policy, f.deps); err != nil {
		return f.Config, usagef("simulate: %w", err)
	}
	if p.replay != nil {
		err = p.impose(&f.Config, f.agents)
	}
	if _, fluid := f.Policy.(scheduler.Fluid); fluid && err == nil {
		if err := f.Validate(); err != nil {
			return f.Config, usagef("simulate: policy %s: %w", p.name, err)
		}
	}
	return f.Config, err
}

// frame is a run without its policy, and what that is made of.
type frame struct {
	sim.Config
	deps   policy.Deps
	agents *goodput.Agents // nil = jobs fit no models of their own
}

func (p *planned) frame(ctx context.Context) (f frame, err error) {
	oracle, sightings, err := p.oracle(ctx)
	if err != nil {
		return f, err
	}
	truth := p.truth.truth(p.cluster)
	if f.agents = p.agents(); f.agents != nil {
		oracle, truth = f.agents.Oracle(), f.agents.Truth()
	}
	f.deps = policy.Deps{
		Oracle: oracle, Seed: p.seed, Speeds: p.belief.speeds,
		Losses: &loss.Made{Steps: truth.Steps, Sigma: p.lossNoise, Seed: p.seed},
	}
	if p.truth.served != nil {
		f.deps.Servers = p.truth.served
	}
	if f.Config, err = p.parts.config(&f.deps); err != nil {
		return f, err
	}
	f.PolicyName, f.Sightings = p.name, sightings
	f.Cluster, f.Jobs, f.Score, f.Truth = p.cluster, p.jobs, p.score.Has, truth
	p.trouble.config(&f.Config, p.seed)
	return f, nil
}

// agents are the jobs of a run if they fit models of their own, else nil.
func (s *study) agents() *goodput.Agents {
	q := s.parts.mode.Quirks
	if !q.OwnModels || s.truth.tables == nil {
		return nil
	}
	out := goodput.NewAgents(s.truth.tables, s.cluster, q)
	if s.pooled {
		out.Pool()
	}
	return out
}

// oracle is what a policy believes: the belief's predictor over the space of
// what the truth lets be granted. Each run gets its own, so that nothing one
// asked speeds up the next. What is seen of the jobs is told to one that learns.
func (p *planned) oracle(ctx context.Context) (scheduler.Oracle, *sim.Sightings, error) {
	switch {
	case p.belief.learning != nil:
		return p.belief.learning.oracle(ctx, p.study)
	case p.belief.predictor == nil:
		return nil, nil, nil
	}
	return newOracle(p.belief, p.truth), nil, nil
}

// print writes the summaries to standard output, and what should be seen about
// the runs to standard error.
func (s *study) print(c *cli.Context, results []*sim.Result) error {
	said := map[string]bool{}
	for _, r := range results {
		for _, line := range reasons(r, func(j *sim.JobRecord) string { return j.Rejected }) {
			fmt.Fprintf(c.App.ErrWriter, "rejected: %s: %s\n", r.Policy, line)
		}
		for _, line := range reasons(r, scoredUnfinished) {
			fmt.Fprintf(c.App.ErrWriter, "unfinished: %s: %s\n", r.Policy, line)
		}
		for _, warning := range r.Warnings {
			if !said[warning] && len(said) < maxReported {
				fmt.Fprintf(c.App.ErrWriter, "warning: %s: %s\n", r.Policy, warning)
			}
			said[warning] = true
		}
	}
	w, runs := c.App.Writer, report.SummarizeAll(results, s.score)
	switch output := global(c, "output"); {
	case output == "json" && s.explain != nil:
		return report.WriteExplained(w, runs, s.explain)
	case output == "json":
		return report.WriteJSON(w, runs)
	case output == "csv" && s.explain != nil:
		return s.explain.WriteCSV(w)
	case output == "csv":
		return report.WriteCSV(w, runs)
	}
	if err := report.WriteTable(w, runs); err != nil || s.explain == nil {
		return err
	}
	return s.explain.WriteTable(w)
}

// scoredUnfinished returns why a job that the run was about did not finish, ""
// for all others.
func scoredUnfinished(j *sim.JobRecord) string {
	if !j.Scored {
		return ""
	}
	return j.Unfinished
}

// reasons says of whom there is a reason, and which, those of one reason together,
// at most maxReported reasons.
func reasons(r *sim.Result, of func(*sim.JobRecord) string) []string {
	first, count := map[string]spec.JobID{}, map[string]int{}
	var whys []string
	for i := range r.Jobs {
		why := of(&r.Jobs[i])
		if why == "" {
			continue
		}
		if count[why]++; count[why] == 1 {
			first[why], whys = r.Jobs[i].Job.ID, append(whys, why)
		}
	}
	var out []string
	for i, why := range whys {
		if i == maxReported {
			return append(out, fmt.Sprintf("for %d more reasons", len(whys)-i))
		}
		out = append(out, fmt.Sprintf("%s, job %s first: %s", spec.Count(count[why], "job"), first[why], why))
	}
	return out
}

// page is the HTML report of the study.
func (s *study) page(results []*sim.Result, gantts []*report.Gantt) report.HTMLInput {
	admission, placement, round, mode := s.parts.words()
	return report.HTMLInput{
		Title:   fmt.Sprintf("%d jobs on %d devices", len(s.jobs), s.cluster.Devices()),
		Results: results, Gantts: gantts, Score: s.score,
		Facts: []report.Fact{
			{Name: "Workload", Value: filepath.Base(s.workload)},
			{Name: "Cluster", Value: clusterString(s.cluster)},
			{Name: "Truth", Value: s.truth.name + strings.Join(append([]string{""}, s.notes...), "; ")},
			{Name: "Belief", Value: s.belief.name},
			{Name: "Start cost", Value: s.trouble.costsText},
			{Name: "Trouble", Value: s.trouble.text},
			{Name: "Admission", Value: admission},
			{Name: "Placement", Value: placement},
			{Name: "Rounds", Value: round},
			{Name: "Semantics of", Value: mode},
			{Name: "Scored jobs", Value: s.score.String()},
			{Name: "Seed", Value: fmt.Sprint(s.seed)},
			{Name: "Pacer", Value: versionString()},
		},
	}
}

func clusterString(cl spec.Cluster) string {
	var parts []string
	for _, g := range cl.Groups {
		parts = append(parts, fmt.Sprintf("%d x %d x %s", g.Count, g.Devices, g.Accelerator.Name))
	}
	return strings.Join(parts, ", ")
}
