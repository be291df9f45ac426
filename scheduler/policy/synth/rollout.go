package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// rollout simulates compositions from the present state with the present jobs. Speeds are
// predicted, else from submitted durations, else such that a job takes an hour. It never
// reads the ground truth.
type rollout struct {
	synth    *synth
	now      time.Duration
	cluster  spec.Cluster
	jobs     []spec.Job
	states   map[spec.JobID]*scheduler.JobState // present states of jobs
	admitted []scheduler.JobState               // states of admitted jobs
	outages  sim.OutageTable                    // of the nodes that are down
}

// unknownFor is the assumed duration of a job without a prediction, and the time a node
// that is down is assumed to stay down.
const unknownFor = time.Hour

func newRollout(p *synth, s *scheduler.Snapshot, jobs []*scheduler.JobState) *rollout {
	f := &rollout{synth: p, now: s.Now, cluster: s.Cluster, states: map[spec.JobID]*scheduler.JobState{}}
	for _, j := range jobs {
		c := *j
		c.Remaining = max(c.Remaining, 1e-9*(1+c.Done)) // a truth may round it to 0 shortly before the end
		f.jobs = append(f.jobs, *j.Job)
		f.states[j.Job.ID] = &c
		if p.admitted[j.Job.ID] {
			f.admitted = append(f.admitted, c)
		}
	}
	for _, node := range s.Down {
		if f.outages == nil {
			f.outages = sim.OutageTable{}
		}
		f.outages[node] = []sim.Outage{{Down: s.Now, Up: s.Now + unknownFor}}
	}
	return f
}

// all returns the objective of every candidate; lower is better. Candidates are simulated
// in parallel, with results that do not depend on the number of cores.
func (f *rollout) all(ctx context.Context) ([]float64, error) {
	candidates := f.synth.candidates
	values := make([]float64, len(candidates))
	errs := make([]error, len(candidates))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range candidates {
		g.Go(func() error {
			values[i], errs[i] = f.value(ctx, candidates[i])
			return nil
		})
	}
	_ = g.Wait() // errs decides: the first by candidate, not by time
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("policy: synth: simulating %s: %w", candidates[i], err)
		}
	}
	return values, nil
}

// value simulates a candidate and returns its objective.
func (f *rollout) value(ctx context.Context, c candidate) (float64, error) {
	made, err := c.make(f.synth.deps)
	if err != nil {
		return 0, err
	}
	config := sim.Config{
		Cluster: f.cluster, Jobs: f.jobs, Policy: made.policy, PolicyName: c.policy.String(), Admission: made.admission,
		Truth: estimatedTruth{f, sim.Predicted{Predictor: f.synth.deps.Oracle, Cluster: f.cluster}}, Round: f.synth.round,
		Costs:  sim.PerStart(func(j spec.Job) time.Duration { return f.states[j.ID].StartCost }),
		Resume: &sim.Resume{At: f.now, Jobs: f.admitted},
	}
	if f.synth.lookahead > 0 {
		config.Horizon = f.now + f.synth.lookahead
	}
	if f.outages != nil {
		config.Failures = f.outages
	}
	r, err := sim.Run(ctx, config)
	if err != nil {
		return 0, err
	}
	if f.synth.lookahead > 0 {
		r.TimeAlone(ctx, config)
	}
	all := make([]outcome, len(r.Jobs))
	for i := range r.Jobs {
		all[i] = f.outcomeOf(&r.Jobs[i], config.Horizon)
	}
	return f.synth.objective(all), nil
}

// outcomeOf returns the outcome of a job. A job that is not done at the horizon is assumed to
// end after the time it takes alone; without a horizon, never.
func (f *rollout) outcomeOf(j *sim.JobRecord, horizon time.Duration) outcome {
	e := outcome{jct: j.JCT().Seconds(), delay: j.Delay().Seconds(), after: (j.End - f.now).Seconds()}
	if !j.Ran() {
		e.delay = (horizon - j.Job.Submit).Seconds()
	}
	if !j.Finished {
		s := f.states[j.Job.ID]
		left := j.Alone.Seconds()*s.Remaining/(s.Done+s.Remaining) - (j.Attained-s.Attained)/float64(j.Job.Devices)
		e.after = (horizon - f.now).Seconds() + max(left, 0)
		e.jct = e.after + (f.now - j.Job.Submit).Seconds()
	}
	if !j.Finished && (horizon == 0 || j.Rejected != "") {
		return outcome{math.Inf(1), math.Inf(1), math.Inf(1)}
	}
	return e
}

// estimatedTruth is the truth source of a rollout: predictions.
type estimatedTruth struct {
	*rollout
	oracle sim.Predicted // without a Predictor if there are no predictions
}

// Steps is the completed plus the remaining steps of the job.
func (b estimatedTruth) Steps(_ context.Context, j *spec.Job) (float64, error) {
	s := b.states[j.ID]
	return s.Done + s.Remaining, nil
}

func (b estimatedTruth) StepsPerSec(ctx context.Context, j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) (float64, error) {
	if b.synth.deps.Oracle != nil {
		rate, err := b.oracle.StepsPerSec(ctx, j, g, group)
		if err == nil && rate > 0 {
			return rate, nil
		}
		if err != nil && !errors.Is(err, perfmodel.ErrNotCovered) && !errors.Is(err, planner.ErrInfeasible) {
			return 0, err
		}
	}
	steps, err := b.Steps(ctx, j)
	return steps / cmp.Or(j.Duration, unknownFor).Seconds(), err
}

// outcome has the times of a job, in seconds.
type outcome struct {
	jct   float64 // from submission to the end
	delay float64 // from submission to the first devices
	after float64 // from now to the end
}

// objective is a cost of the outcomes of all jobs.
type objective func([]outcome) float64

// objectives are the values of option objective.
var objectives = map[string]objective{
	"avg-jct":   mean(func(e outcome) float64 { return e.jct }),
	"avg-delay": mean(func(e outcome) float64 { return e.delay }),
	"p99-jct":   rank(0.99, func(e outcome) float64 { return e.jct }),
	"makespan":  rank(1, func(e outcome) float64 { return e.after }),
}

// parseObjective returns the objective of a name.
func parseObjective(name string) (objective, error) {
	if o, ok := objectives[name]; ok {
		return o, nil
	}
	return nil, fmt.Errorf("objective=%s is not one of %s", name, strings.Join(slices.Sorted(maps.Keys(objectives)), ", "))
}

// mean returns the objective that is the mean over jobs.
func mean(of func(outcome) float64) objective {
	return func(all []outcome) float64 {
		sum := 0.0
		for _, e := range all {
			sum += of(e)
		}
		return sum / float64(len(all))
	}
}

// rank returns the objective that is a quantile over jobs, by nearest rank.
func rank(p float64, of func(outcome) float64) objective {
	return func(all []outcome) float64 {
		values := make([]float64, len(all))
		for i, e := range all {
			values[i] = of(e)
		}
		slices.Sort(values)
		return stats.NearestRank(values, p)
	}
}
