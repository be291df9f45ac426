package goodput

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Truth is how jobs really get on in tables, as a sim.Staged. A job's work is
// counted in optimizer steps at its own global batch. One that trains for epochs
// has as many as it takes at that batch; a plan may train another, whose steps
// count for what they are worth then. One that is known by its steps or its
// duration trains on beyond the epochs of the tables as in the last of them.
type Truth struct {
	tables  *Tables
	cluster spec.Cluster // where jobs known by their duration alone are timed

	mu      sync.Mutex
	courses map[courseKey]*course
	stages  map[stagesKey]pace
	tuned   tunings

	exact, interpolated int // look-ups of step times
}

// pace is how a job gets on, and whether the step time it follows from was
// measured.
type pace struct {
	stages []sim.Stage
	exact  bool
}

// NewTruth returns the truth of t.
func NewTruth(t *Tables, cl spec.Cluster) *Truth {
	return &Truth{tables: t, cluster: cl, courses: map[courseKey]*course{}, stages: map[stagesKey]pace{}, tuned: tunings{}}
}

// course is what lies before jobs of one kind.
type course struct {
	gains []float64 // by epoch, of a step at the job's batch
	ends  []float64 // steps at the job's batch until the end of each epoch
	work  float64   // steps until the job is done, 0 where epochs do not tell
	// counted is as ends, as they were counted in training: the gains of which
	// that is the outcome are not quite those that were measured.
	counted []float64
}

type courseKey struct {
	model  string
	batch  int
	epochs float64
}

type stagesKey struct {
	model              string
	batch              int       // the job's
	plan               spec.Plan // of the grant; zero where the job chooses its batch
	shape, accelerator string
}

// courseOf returns the course of j.
func (t *Truth) courseOf(j *spec.Job) (*course, error) {
	key := courseKey{j.Model.Name, j.Batch(), j.Epochs}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.courses[key]; c != nil {
		return c, nil
	}
	c, err := t.tables.course(key)
	if err == nil {
		t.courses[key] = c
	}
	return c, err
}

// course returns what lies before the jobs of a kind.
func (t *Tables) course(key courseKey) (*course, error) {
	a, ok := t.apps[key.model]
	if !ok {
		return nil, fmt.Errorf("goodput: no table of %q: %w", key.model, errNotCovered)
	}
	return a.course(key.batch, key.epochs)
}

// course returns what lies before jobs that train a batch for so many epochs.
func (a *app) course(batch int, epochs float64) (*course, error) {
	whole := int(math.Ceil(epochs))
	if whole > len(a.ends) {
		return nil, fmt.Errorf("goodput: %s was trained for %d epochs, not %g: %w", a.name, len(a.ends), epochs, errNotCovered)
	}
	gains, err := a.gains(batch)
	if err != nil {
		return nil, err
	}
	c := &course{gains: gains, ends: make([]float64, len(gains))}
	if c.counted, err = a.steps(batch); err != nil {
		return nil, err
	}
	done, before := 0.0, 0.0
	for e, end := range a.ends {
		done += (end - before) / gains[e]
		before, c.ends[e] = end, done
	}
	switch {
	case whole == 1:
		c.work = c.ends[0] * epochs
	case whole > 1:
		c.work = mix(c.ends[whole-1], c.ends[whole-2], float64(whole)-epochs)
	}
	return c, nil
}

// Steps returns the work of j. For a job known by its duration alone it follows
// from the speed at the plan and devices it was submitted with, packed, on the
// first group it may use.
func (t *Truth) Steps(ctx context.Context, j *spec.Job) (float64, error) {
	c, err := t.courseOf(j)
	if err != nil {
		return 0, err
	}
	switch {
	case j.Steps > 0:
		return j.Steps, nil
	case c.work > 0:
		return c.work, nil
	}
	err = fmt.Errorf("goodput: job %s: no group has accelerator %q", j.ID, j.Accelerator)
	for i := range t.cluster.Groups {
		group := &t.cluster.Groups[i]
		if j.Accelerator != "" && j.Accelerator != group.Accelerator.Name {
			continue
		}
		var stages []sim.Stage
		g := scheduler.Grant{Job: j.ID, Plan: j.Plan, Shape: spec.Packed(j.Devices, group.Devices)}
		if stages, err = t.Stages(ctx, j, &g, group); err == nil {
			return stepsIn(stages, j.Duration.Seconds()), nil
		}
	}
	return 0, fmt.Errorf("job known by its duration alone: %w", err)
}

// stepsIn returns how many steps are run in so many seconds.
func stepsIn(stages []sim.Stage, sec float64) float64 {
	done := 0.0
	for _, s := range stages {
		if takes := (s.Until - done) / s.Rate; takes < sec {
			done, sec = s.Until, sec-takes
			continue
		}
		return done + sec*s.Rate
	}
	return done
}

// StepsPerSec returns the mean speed of j on g over all its work. Where the plan
// trains the job's own batch it is that of every moment.
func (t *Truth) StepsPerSec(ctx context.Context, j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) (float64, error) {
	work, err := t.Steps(ctx, j)
	if err != nil {
		return 0, err
	}
	stages, err := t.Stages(ctx, j, g, group)
	if err != nil {
		return 0, err
	}
	sec, done := 0.0, 0.0
	for _, s := range stages {
		until := min(s.Until, work)
		sec += max(until-done, 0) / s.Rate
		done = until
	}
	return work / sec, nil
}

// Stages returns how j gets on under g, an epoch a stage. A plan that trains batch
// M takes T seconds a step (see stepSec), each of which is worth gain(M) /
// gain(B) steps at the job's batch B in that epoch:
//
//	rate = gain(M) / (gain(B) * T)
//
// A job whose batch is its own to choose trains in each epoch the one at which
// that is largest.
func (t *Truth) Stages(_ context.Context, j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) ([]sim.Stage, error) {
	c, err := t.courseOf(j)
	if err != nil {
		return nil, err
	}
	key := stagesKey{j.Model.Name, j.Batch(), g.Plan, g.Shape.Devices, group.Accelerator.Name}
	if g.Elastic {
		key.plan = spec.Plan{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out, ok := t.stages[key]
	if !ok {
		if g.Elastic {
			out, err = t.elasticStages(key, c)
		} else {
			out, err = t.tables.stages(key, c)
		}
		if err != nil {
			return nil, err
		}
		t.stages[key] = out
	}
	if out.exact {
		t.exact++
	} else {
		t.interpolated++
	}
	return out.stages, nil
}

// stages works out how jobs of a course get on.
func (t *Tables) stages(key stagesKey, c *course) (out pace, err error) {
	a, speeds, err := t.lookup(key.model, key.accelerator)
	if err != nil {
		return out, err
	}
	shape := spec.Shape{Devices: key.shape}
	sec, err := speeds.stepSec(key.plan, shape)
	if err != nil {
		return out, err
	}
	sec *= t.slowdown(key.model)
	gains, err := a.gains(key.plan.GlobalBatch())
	if err != nil {
		return out, err
	}
	for e, end := range c.ends {
		out.stages = append(out.stages, sim.Stage{Until: end, Rate: gains[e] / (c.gains[e] * sec)})
	}
	out.stages[len(out.stages)-1].Until = math.Inf(1)
	out.exact = speeds.measured(shape, key.plan.Normal().MicroBatch)
	return out, nil
}

// elasticStages works out how jobs of a course get on that choose their batch.
func (t *Truth) elasticStages(key stagesKey, c *course) (out pace, err error) {
	tuned, err := t.tuned.of(t.tables, tuningKey{key.model, key.accelerator, key.shape})
	if err != nil {
		return out, err
	}
	for e, end := range c.ends {
		out.stages = append(out.stages, sim.Stage{Until: end, Rate: tuned.goodput[e] / c.gains[e]})
	}
	out.stages[len(out.stages)-1].Until = math.Inf(1)
	out.exact = tuned.exact
	return out, nil
}

// Lookups counts the step times that were measured and interpolated.
func (t *Truth) Lookups() (exact, interpolated, modelled int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.exact, t.interpolated, 0
}

// EpochsLeft returns the steps left of j with so many done, told as the oracle of
// Pollux' artifact tells them: in whole epochs as counted in training at the
// job's batch, from the end of the running one to the end of the last, and 1 in
// the last. ok is false for jobs that do not train for epochs.
func (t *Truth) EpochsLeft(j *spec.Job, done float64) (steps float64, ok bool) {
	c, err := t.courseOf(j)
	if err != nil || c.work == 0 {
		return 0, false
	}
	running, _ := slices.BinarySearchFunc(c.ends, done, func(end, done float64) int {
		if end <= done {
			return -1
		}
		return 1
	})
	last := int(math.Ceil(j.Epochs)) - 1
	if running >= last {
		return 1, true
	}
	return c.counted[last] - c.counted[running], true
}
