package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/learn"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

func learnCommand() *cli.Command {
	return &cli.Command{
		Name:  "learn",
		Usage: "train scheduling policies that are learnt",
		Description: `Learnt policies are trained in the simulator, on workloads like those they
are to schedule, and are then policies like all others.`,
		Subcommands: []*cli.Command{learnDL2Command()},
	}
}

func learnDL2Command() *cli.Command {
	def := learn.DefaultOptions()
	s, r := &def.Supervised, &def.Reinforced
	return &cli.Command{
		Name:  "dl2",
		Usage: "train policy dl2: by a teacher first, then by what its own decisions bring",
		Description: `A network is asked again and again who gets one more device until it ends the
slot (Peng et al., DL2, IEEE TPDS 2021). It first learns to decide as --teacher
does, any policy of pacer ls policies, for --updates updates; then it decides
itself in --iterations times --episodes simulated workloads, and what went
well becomes likelier. Every 25 updates and --validate iterations it is tried on
workloads that it does not learn from; --out holds the best so far, always
whole: the copy that the teacher agrees with most, then the policy under which
jobs take least time. Learning from the teacher alone takes a minute or so:

   pacer learn dl2 --workload synthetic:jobs=60,models=BERT-large+Llama3-8B \
       --cluster 4x8xH100 --truth fitted:analytic --slot 300 \
       --teacher optimus-oracle --iterations 0 --out policy.bin
   pacer simulate --workload synthetic:jobs=60,models=BERT-large+Llama3-8B \
       --cluster 4x8xH100 --truth fitted:analytic --seed 2 \
       --policy dl2:model=policy.bin,optimus-oracle

A workload synthetic:... is drawn anew for every episode; give simulate another
--seed than training had. Of a file of jobs every episode has as many, drawn from
them with their gaps in another order. The policy knows the models of the workload,
and no others: those run as submitted. With more jobs than --jobs it decides about
so many at a time, by arrival.

--from FILE goes on from a policy of the same --jobs, models and --slot. Should a
loss stop being a number training ends with exit code 1, and --out stays as it was
when it was best.`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "workload", Aliases: []string{"w"}, Usage: "`FILE[:FORMAT]` of jobs, or synthetic:OPTIONS, as with simulate"},
			windowFlag, loadScaleFlag,
			&cli.StringFlag{Name: "cluster", Usage: "`SPEC` of the machines, or a YAML file"},
			&cli.StringFlag{Name: "truth", Usage: "`TRUTH`, as with simulate"},
			&cli.StringFlag{Name: "belief", Usage: "`BELIEF` of the policies, as with simulate"},
			&cli.StringFlag{Name: "placement", Usage: "`NAME` of the placer, see pacer ls placements"},
			&cli.StringFlag{Name: "round", Usage: "let policies decide only every so many `SECONDS` (default: whenever something happens)"},
			&cli.StringFlag{Name: "out", Usage: "write the policy to `FILE`"},
			&cli.StringFlag{Name: "from", Usage: "go on from the policy in `FILE`"},
			&cli.BoolFlag{Name: "compact", Usage: "write what policy dl2 needs, in half precision: nothing to go on from"},
			&cli.StringFlag{Name: "curve-out", Usage: "write the learning curve to `FILE`.csv, a row per update and iteration"},
			&cli.StringFlag{Name: "svg", Usage: "draw the learning curve into `FILE`"},

			&cli.StringFlag{Name: "teacher", Value: "drf", Usage: "`NAME[:key[=value]...]` of the policy to learn from first"},
			&cli.IntFlag{Name: "jobs", Value: 20, Usage: "`J`, jobs the network sees at once"},
			&cli.StringFlag{Name: "slot", Value: "1200", Usage: "`SECONDS` between two decisions about running jobs"},
			&cli.StringFlag{Name: "state", Value: "speeds", Usage: "`KIND` of state: paper, or speeds, which tells what is believed of jobs' speeds too"},
			&cli.StringFlag{Name: "net", Value: "shared", Usage: "`KIND` of network: dense, which sees all jobs at once, as the paper's, or shared, the same for each job with the sum of all"},
			&cli.IntFlag{Name: "hidden", Value: def.Hidden, Usage: "`UNITS` of each of the two hidden layers"},
			&cli.IntFlag{Name: "updates", Value: s.Updates, Usage: "`N` updates by what the teacher does; 0 = do without"},
			&cli.IntFlag{Name: "rounds", Value: s.Rounds, Usage: "`N` times the teacher is watched; from the second on it is asked what it would do where the network got to"},
			&cli.IntFlag{Name: "watch", Value: s.Episodes, Usage: "`N` workloads in each of these"},
			&cli.IntFlag{Name: "iterations", Value: r.Iterations, Usage: "`N` rounds of own decisions; 0 = do without"},
			&cli.IntFlag{Name: "episodes", Value: r.Episodes, Usage: "`N` workloads in each iteration"},
			&cli.IntFlag{Name: "steps", Value: r.Updates, Usage: "`N` updates in each iteration"},
			&cli.IntFlag{Name: "batch", Value: s.Batch, Usage: "`N` actions that an update learns from, by the teacher"},
			&cli.IntFlag{Name: "own-batch", Value: r.Batch, Usage: "`N` of them by own decisions"},
			&cli.Float64Flag{Name: "rate", Value: s.Rate, Usage: "`RATE` of Adam, from the teacher"},
			&cli.Float64Flag{Name: "own-rate", Value: r.Rate, Usage: "`RATE` of Adam, from own decisions"},
			&cli.Float64Flag{Name: "discount", Value: r.Discount, Usage: "of the reward of the next slot, `0..1`"},
			&cli.Float64Flag{Name: "lambda", Value: r.Lambda, Usage: "of the advantage of the next slot, `0..1`"},
			&cli.Float64Flag{Name: "soften", Value: r.Soften, Usage: "`N` that preferences are divided by before own decisions begin, for a copy that is sure tries nothing else"},
			&cli.Float64Flag{Name: "entropy", Value: r.Entropy, Usage: "what it is `worth` to be undecided"},
			&cli.Float64Flag{Name: "explore", Value: r.Explore, Usage: "`PROBABILITY` with which a job with workers or servers alone is helped; 0 = never"},
			&cli.IntFlag{Name: "replay-size", Value: r.Replay, Usage: "`N` actions that are kept to learn from; 0 = those of the iteration"},
			&cli.StringFlag{Name: "reward", Value: string(r.Reward), Usage: "`NAME`: progress (share of jobs' work done in a slot), per-action, or waiting (time jobs are inside)"},
			&cli.BoolFlag{Name: "no-value", Usage: "compare with the mean, not with a value network"},
			&cli.IntFlag{Name: "validate", Value: def.ValidateIterations, Usage: "try the policy every `N` iterations, and every 25 updates"},
			&cli.IntFlag{Name: "validation", Value: def.Validation, Usage: "on `N` workloads"},
		}, troubleFlags),
		Before: noArgs,
		Action: runLearnDL2,
	}
}

// learning run of policy dl2, as asked for.
type learnRun struct {
	learn.Options
	study  *study
	draw   func(number int) ([]spec.Job, error)
	from   *policy.DL2Model
	oracle scheduler.Oracle // of all episodes, so that none asks again what another has
	points []learn.Point
}

func runLearnDL2(c *cli.Context) (err error) {
	if err := checkOutput(c); err != nil {
		return err
	}
	out := c.String("out")
	if out == "" {
		return usagef("learn: --out is missing: FILE for the policy")
	}
	began := time.Now()
	run, err := newLearnRun(c)
	if err != nil {
		return err
	}
	curve, err := createOut(c.String("curve-out"))
	if err != nil {
		return fmt.Errorf("learn: --curve-out: %w", err)
	}
	defer func() { err = errors.Join(err, curve.discard()) }()
	svg, err := createOut(c.String("svg"))
	if err != nil {
		return fmt.Errorf("learn: --svg: %w", err)
	}
	defer func() { err = errors.Join(err, svg.discard()) }()
	t, err := learn.NewTrainer(run.Options, run.episode, run.from)
	if err != nil {
		return learnError(err)
	}
	var best learn.Point
	t.Save = func(m *policy.DL2Model) error { return savePolicy(out, m, run.origin(c), c.Bool("compact")) }
	t.Tell = func(p learn.Point) error {
		if p.Best {
			best = p
		}
		run.points = append(run.points, p)
		run.progress(c.App.ErrWriter, p)
		return nil
	}
	_, err = t.Run(c.Context)
	if curve != nil {
		err = errors.Join(err, curve.write(func(w io.Writer) error { return learn.WriteCSV(w, run.points) }))
	}
	if svg != nil {
		err = errors.Join(err, svg.write(func(w io.Writer) error { return learn.WriteSVG(w, run.points) }))
	}
	if err != nil {
		return learnError(err)
	}
	return run.print(c, out, best, time.Since(began))
}

// learnError gives errors about what was asked for their exit code.
func learnError(err error) error {
	if errors.Is(err, policy.ErrOtherForm) {
		return &exitError{exitUsage, err}
	}
	return err
}

// newLearnRun reads the flags, everything that can be wrong with them first.
func newLearnRun(c *cli.Context) (*learnRun, error) {
	run := &learnRun{Options: learn.DefaultOptions()}
	slot, err := strconv.ParseFloat(c.String("slot"), 64)
	if err != nil {
		return nil, usagef("learn: --slot %q is not a number of seconds", c.String("slot"))
	}
	if state := c.String("state"); state != "paper" && state != "speeds" {
		return nil, usagef("learn: --state %q is neither paper nor speeds", state)
	}
	if net := c.String("net"); net != "dense" && net != "shared" {
		return nil, usagef("learn: --net %q is neither dense nor shared", net)
	}
	flags := map[string]string{"policy": "dl2"}
	if c.Int("updates") > 0 {
		flags["policy"] = c.String("teacher")
	}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if simulateHas(name) && c.IsSet(name) {
			flags[name] = fmt.Sprint(c.Value(name))
		}
	}
	sim, err := simulateContext(c, flags)
	if err == nil {
		run.study, err = newStudy(sim)
	}
	if err != nil {
		return nil, fmt.Errorf("learn: %w", err)
	}
	if run.study.belief.learning != nil || run.study.agents() != nil {
		return nil, usagef("learn: --belief %s changes in the course of a run: dl2 is trained with one that does not", run.study.belief.name)
	}
	run.draw = run.workloads(c, flags)
	if run.study.belief.predictor != nil {
		run.oracle = newOracle(run.study.belief, run.study.truth)
	}
	o := &run.Options
	o.Seed, o.Hidden = seed(c), c.Int("hidden")
	o.Form = policy.DL2Form{Jobs: c.Int("jobs"), Types: modelsOf(run.study.jobs), SlotSec: slot, Speeds: c.String("state") == "speeds", Dense: c.String("net") == "dense",
		Servers: slices.ContainsFunc(run.study.jobs, func(j spec.Job) bool { return j.Served() })}
	o.Validation, o.ValidateIterations = c.Int("validation"), c.Int("validate")
	o.Supervised = learn.Supervised{Teacher: c.String("teacher"), Updates: c.Int("updates"), Batch: c.Int("batch"), Rate: c.Float64("rate"),
		Rounds: min(c.Int("rounds"), max(c.Int("updates"), 1)), Episodes: c.Int("watch")}
	r := &o.Reinforced
	r.Iterations, r.Episodes, r.Updates, r.Batch = c.Int("iterations"), c.Int("episodes"), c.Int("steps"), c.Int("own-batch")
	r.Rate, r.Discount, r.Lambda, r.Soften, r.Entropy = c.Float64("own-rate"), c.Float64("discount"), c.Float64("lambda"), c.Float64("soften"), c.Float64("entropy")
	r.Explore, r.Replay, r.Reward, r.NoValue = c.Float64("explore"), c.Int("replay-size"), learn.Reward(c.String("reward")), c.Bool("no-value")
	if err := o.Validate(); err != nil {
		return nil, usagef("%w", err)
	}
	if from := c.String("from"); from != "" {
		if run.from, err = policy.ReadDL2(from); err != nil {
			return nil, err
		}
	}
	return run, nil
}

// simulateHas reports whether simulate has a flag of that name that means the same.
func simulateHas(name string) bool {
	return slices.ContainsFunc(slices.Concat(simulateCommand().Flags, globalFlags()), func(f cli.Flag) bool {
		return f.Names()[0] == name && name != "policy" && name != "output"
	})
}

// modelsOf lists the models of jobs.
func modelsOf(jobs []spec.Job) (names []string) {
	for i := range jobs {
		names = append(names, jobs[i].Model.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// workloads returns what makes the jobs of an episode: those of synthetic ones from a
// seed of its own, those of a file in another order.
func (run *learnRun) workloads(c *cli.Context, flags map[string]string) func(int) ([]spec.Job, error) {
	if _, ok := syntheticOptions(c.String("workload")); !ok {
		all := run.study.jobs
		return func(number int) ([]spec.Job, error) { return learn.Resample(all, seed(c), number), nil }
	}
	return func(number int) ([]spec.Job, error) {
		own := maps.Clone(flags)
		own["seed"] = strconv.FormatUint(learn.EpisodeSeed(seed(c), number), 10)
		ctx, err := simulateContext(c, own)
		if err != nil {
			return nil, err
		}
		w, _, err := loadWorkload(ctx, flags["workload"])
		if err != nil {
			return nil, err
		}
		return cutWorkload(ctx, w.Jobs)
	}
}

// episode makes the run of a number.
func (run *learnRun) episode(ctx context.Context, number int) (e learn.Episode, err error) {
	own := *run.study
	own.seed = learn.EpisodeSeed(run.Seed, number)
	if own.jobs, err = run.draw(number); err != nil {
		return e, err
	}
	if own.jobs, err = own.prepare(ctx, own.jobs); err != nil {
		return e, err
	}
	p := own.planned()[0]
	f, err := p.frame(ctx)
	if run.oracle != nil {
		f.deps.Oracle = run.oracle
	}
	return learn.Episode{Config: f.Config, Deps: f.deps}, err
}

// origin says how a policy came to be.
func (run *learnRun) origin(c *cli.Context) map[string]string {
	teacher := "none"
	if run.Supervised.Updates > 0 {
		teacher = run.Supervised.Teacher
	}
	return map[string]string{
		"workload": run.study.workload, "cluster": clusterString(run.study.cluster), "truth": run.study.truth.name, "belief": run.study.belief.name,
		"teacher": teacher, "updates": strconv.Itoa(run.Supervised.Updates), "iterations": strconv.Itoa(run.Reinforced.Iterations),
		"reward": string(run.Reinforced.Reward), "seed": strconv.FormatUint(run.Seed, 10), "pacer": versionString(),
	}
}

// savePolicy writes a policy whole, or leaves what was there.
func savePolicy(path string, m *policy.DL2Model, origin map[string]string, compact bool) error {
	m.Origin = origin
	b, err := m.Encode(compact)
	if err != nil {
		return err
	}
	f, err := createOut(path)
	if err != nil {
		return fmt.Errorf("learn: --out: %w", err)
	}
	return f.write(func(w io.Writer) error { _, err := w.Write(b); return err })
}

// progress says on standard error what was reached.
func (run *learnRun) progress(w io.Writer, p learn.Point) {
	if p.JCTSec == 0 {
		return
	}
	unit := map[bool]string{true: "update", false: "iteration"}[p.Phase == "supervised"]
	fmt.Fprintf(w, "learn: %s %s %d of %d: loss %.4g, mean JCT %.0f s on validation", p.Phase, unit, p.Update, p.Of, p.Losses.Policy, p.JCTSec)
	if p.Teacher > 0 {
		fmt.Fprintf(w, ", %.3f x the teacher's", p.JCTSec/p.Teacher)
	}
	if p.Agrees > 0 {
		fmt.Fprintf(w, ", %.2f %% of its actions as the teacher's", 100*p.Agrees)
	}
	if p.Best {
		fmt.Fprint(w, ", the best so far")
	}
	fmt.Fprintln(w)
}

// print writes what was learnt.
func (run *learnRun) print(c *cli.Context, path string, best learn.Point, took time.Duration) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	last := run.points[len(run.points)-1]
	row := learnRow{File: path, Bytes: info.Size(), Jobs: run.Form.Jobs, Models: run.Form.Types, SlotSec: run.Form.SlotSec, Servers: run.Form.Servers,
		Teacher: run.Supervised.Teacher, TeacherJCT: last.Teacher, JCT: best.JCTSec, Phase: best.Phase, Update: best.Update, Elapsed: took.Seconds()}
	if run.Supervised.Updates == 0 {
		row.Teacher = ""
	}
	return row.write(c)
}

// learnRow is what there is to say of a trained policy.
type learnRow struct {
	File       string   `json:"file"`
	Bytes      int64    `json:"bytes"`
	Jobs       int      `json:"jobs"`
	Models     []string `json:"models"`
	SlotSec    float64  `json:"slot_s"`
	Servers    bool     `json:"parameter_servers"`
	Teacher    string   `json:"teacher,omitempty"`
	TeacherJCT float64  `json:"teacher_avg_jct_s,omitempty"`
	JCT        float64  `json:"avg_jct_s"`
	Phase      string   `json:"phase"`
	Update     int      `json:"update"`
	Elapsed    float64  `json:"elapsed_s"`
}

func (r learnRow) write(c *cli.Context) error {
	return emit(c, result{json: r, csv: [][]string{
		{"file", "jobs", "models", "slot_s", "teacher", "teacher_avg_jct_s", "avg_jct_s", "phase", "update", "bytes"},
		{r.File, strconv.Itoa(r.Jobs), strings.Join(r.Models, " + "), fmt.Sprintf("%g", r.SlotSec), r.Teacher,
			fmt.Sprintf("%.1f", r.TeacherJCT), fmt.Sprintf("%.1f", r.JCT), r.Phase, strconv.Itoa(r.Update), strconv.FormatInt(r.Bytes, 10)},
	}})
}
