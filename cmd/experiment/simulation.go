package experiment

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/hostspeed"
	"github.com/pacer-ml/pacer/scheduler/loss"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/replay"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Simulation is everything that Options name, read and checked. Its runs share nothing
// that one of them changes.
type Simulation struct {
	// Workload names where the jobs are from, Bad counts its rows that cannot be used.
	Workload string
	Jobs     []spec.Job
	Bad      int
	Cluster  spec.Cluster
	Policies []policy.Spec
	Score    report.Score // the jobs that count
	Seed     uint64
	// Notes say what was changed about the jobs.
	Notes []string

	options     Options
	truth       *Source
	belief      *Source
	perfect     *Source          // compared with a belief that learns
	hosts       *hostspeed.Table // effect of hosts on speeds; nil = none
	pooled      bool             // jobs of one model share the models they fit
	failures    failures
	composition composition
	recorded    *recorded     // what is replayed; nil = nothing
	replay      replay.Rounds // to impose, nil = the policies decide
	lossNoise   float64       // deviation of ln(loss)
}

// New reads everything that o names, and reports the first mistake: *FieldError where an
// option is at fault.
func New(ctx context.Context, o Options) (*Simulation, error) {
	if err := o.readScheduler(); err != nil {
		return nil, err
	}
	recorded, err := o.readRecording()
	if err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Simulation{Seed: o.Seed, options: o, lossNoise: number(o.LossNoise, 0.02), recorded: recorded}
	if s.composition, err = o.composition(); err != nil {
		return nil, err
	}
	if s.Policies, err = builtin.Policies.Parse(cmp.Or(o.Policy, "fifo")); err != nil {
		return nil, invalidBecause("policy", o.Policy, err)
	}
	if err = s.composition.supports(s.Policies); err != nil {
		return nil, err
	}
	if s.Score, err = report.ParseScore(o.Score); err != nil {
		return nil, invalidBecause("score", o.Score, err)
	}
	if s.Cluster, err = o.cluster(); err != nil {
		return nil, err
	}
	format, err := s.readWorkload(ctx)
	if err != nil {
		return nil, err
	}
	if recorded != nil {
		format = "recording"
		err = s.useRecording()
	} else {
		err = s.readReplay(o.Replay)
	}
	if err != nil {
		return nil, err
	}
	if err := s.resolveSources(ctx, format); err != nil {
		return nil, err
	}
	return s, s.readHostSpeeds(o.HostSpeeds)
}

// readWorkload makes the jobs and reports rows that cannot be used. It returns the
// format they were in.
func (s *Simulation) readWorkload(ctx context.Context) (format string, err error) {
	o := &s.options
	if o.Given.Jobs != nil {
		s.Workload, s.Jobs = cmp.Or(o.Workload, "given"), o.Given.Jobs
		return "", nil
	}
	w, path, err := o.loadWorkload(ctx, o.Workload)
	if err != nil {
		return "", err
	}
	warn(o, "warning", "warnings", w.Warnings)
	warn(o, "skipped", "rows", w.Bad)
	if len(w.Jobs) == 0 {
		return "", fmt.Errorf("%s holds no job that can be run", path)
	}
	if w.Jobs, err = o.cutWorkload(w.Jobs); err != nil {
		return "", err
	}
	s.Workload, s.Jobs, s.Bad = path, w.Jobs, len(w.Bad)
	if !slices.ContainsFunc(w.Jobs, func(j spec.Job) bool { return s.Score.Has(j.ID) }) {
		return "", invalidBecause("score", o.Score, fmt.Errorf("no job of %s is among {score} %s", path, s.Score))
	}
	return w.Format, nil
}

// ForSeed returns s with another seed: synthetic jobs are drawn anew from it.
func (s *Simulation) ForSeed(ctx context.Context, seed uint64) (*Simulation, error) {
	out := *s
	out.Seed, out.options.Seed = seed, seed
	if !s.Drawn() {
		return &out, nil
	}
	w, _, err := out.options.loadWorkload(ctx, out.options.Workload)
	if err != nil {
		return nil, err
	}
	jobs, err := out.options.cutWorkload(w.Jobs)
	if err != nil {
		return nil, err
	}
	return &out, out.setJobs(ctx, jobs)
}

// Drawn reports whether the jobs follow from the seed.
func (s *Simulation) Drawn() bool {
	_, synthetic := syntheticOptions(s.options.Workload)
	return synthetic && s.options.Given.Jobs == nil
}

// WithJobs returns s with other jobs.
func (s *Simulation) WithJobs(ctx context.Context, jobs []spec.Job) (*Simulation, error) {
	out := *s
	return &out, out.setJobs(ctx, jobs)
}

func (s *Simulation) setJobs(ctx context.Context, jobs []spec.Job) (err error) {
	if s.Jobs, err = s.prepare(ctx, jobs); err == nil {
		err = s.checkCosts()
	}
	return err
}

// Run is a policy to simulate.
type Run struct {
	*Simulation
	Policy policy.Spec
	Name   string
	belief *Source
}

// Runs are the runs of the policies. Under a belief that learns, each policy is followed
// by itself under a perfect one.
func (s *Simulation) Runs() (out []Run) {
	for _, p := range s.Policies {
		out = append(out, Run{s, p, p.String(), s.belief})
		if s.belief.learning != nil {
			out = append(out, Run{s, p, report.PerfectName(p.String()), s.perfect})
		}
	}
	return out
}

// Config returns what sim.Run takes.
func (r *Run) Config(ctx context.Context) (sim.Config, error) {
	f, err := r.Frame(ctx)
	if err != nil {
		return f.Config, err
	}
	if f.Policy, err = builtin.Policies.New(r.Policy, f.Deps); err != nil {
		return f.Config, invalidBecause("policy", r.Policy.String(), err)
	}
	if r.replay != nil {
		err = r.impose(&f.Config, f.agents)
	}
	if _, fluid := f.Policy.(scheduler.Fluid); fluid && err == nil {
		if err := f.Validate(); err != nil {
			return f.Config, invalidBecause("policy", r.Name, fmt.Errorf("policy %s: %w", r.Name, err))
		}
	}
	return f.Config, err
}

// Frame is a run without its policy, and what a policy is made of.
type Frame struct {
	sim.Config
	Deps   policy.Deps
	agents *goodput.Agents // nil = jobs fit no models of their own
}

// Frame returns the run without its policy.
func (r *Run) Frame(ctx context.Context) (f Frame, err error) {
	oracle, observations, err := r.oracle(ctx)
	if err != nil {
		return f, err
	}
	truth := r.truth.truth(r.Cluster, r.Seed)
	if r.recorded != nil {
		truth = r.recorded.truth.In(truth)
	}
	if f.agents = r.agents(); f.agents != nil {
		oracle, truth = f.agents.Oracle(), f.agents.Truth()
	}
	if r.hosts != nil {
		truth = hostspeed.Truth{Truth: truth, Speeds: r.hosts}
	}
	f.Deps = policy.Deps{
		Oracle: oracle, Seed: r.Seed, Speeds: r.belief.speeds,
		Losses: &loss.Synthetic{Steps: truth.Steps, Sigma: r.lossNoise, Seed: r.Seed},
	}
	if r.hosts != nil {
		f.Deps.HostSpeeds = r.hosts
	}
	if r.truth.servers != nil {
		f.Deps.Servers = r.truth.servers
	}
	if f.Config, err = r.composition.config(&f.Deps); err != nil {
		return f, err
	}
	f.PolicyName, f.Observations = r.Name, observations
	f.Cluster, f.Jobs, f.Score, f.Truth = r.Cluster, r.Jobs, r.Score.Has, truth
	r.failures.config(&f.Config, r.Seed)
	return f, nil
}

// agents are the jobs of a run if they fit models of their own, else nil.
func (s *Simulation) agents() *goodput.Agents {
	if s.truth.tables == nil {
		return nil
	}
	out := s.composition.mode.Parts().Agents(s.truth.tables, s.Cluster)
	if out != nil && s.pooled {
		out.Pool()
	}
	return out
}

// oracle is what the policy of a run believes: the belief's predictor over the plans
// that the truth lets be granted. Each run has its own, so that no run has the cached
// answers of another. A belief that learns also gets the step times of running jobs.
func (r *Run) oracle(ctx context.Context) (scheduler.Oracle, *sim.Observations, error) {
	switch {
	case r.belief.learning != nil:
		return r.belief.learning.oracle(ctx, r.Simulation)
	case r.belief.predictor == nil:
		return nil, nil, nil
	}
	return newOracle(r.belief, r.truth, r.Seed), nil, nil
}

// Doubts are values of the truth that are hard to believe, of configurations the jobs
// ask for.
func (s *Simulation) Doubts() []string { return s.truth.doubts }

// Facts describe the simulation for reports.
func (s *Simulation) Facts() []report.Fact {
	admission, placement, round, mode := s.composition.names()
	return []report.Fact{
		{Name: "Workload", Value: filepath.Base(s.Workload)},
		{Name: "Cluster", Value: ClusterText(s.Cluster)},
		{Name: "Truth", Value: s.truth.Name + strings.Join(append([]string{""}, s.Notes...), "; ")},
		{Name: "Belief", Value: s.belief.Name},
		{Name: "Start cost", Value: s.failures.costsText},
		{Name: "Failures", Value: s.failures.text},
		{Name: "Admission", Value: admission},
		{Name: "Placement", Value: placement},
		{Name: "Rounds", Value: round},
		{Name: "Semantics of", Value: mode},
		{Name: "Scored jobs", Value: s.Score.String()},
		{Name: "Seed", Value: fmt.Sprint(s.Seed)},
	}
}
