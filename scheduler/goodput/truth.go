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

// Truth is a sim.Staged by tables. The work of a job is in optimizer steps at its own
// global batch. A plan may use another batch; its steps count by their gain. A job
// submitted with a number of epochs has as many steps as these take. One submitted with
// a number of steps or a duration may exceed the epochs of the tables, and then stays in
// the last one. Truth is safe for concurrent use.
type Truth struct {
	tables  *Tables
	cluster spec.Cluster // for the work of jobs with only a duration

	mu        sync.Mutex
	trainings map[trainingKey]*training
	stages    map[stagesKey]pace
	tuned     tunings

	exact, interpolated int // look-ups of step times
}

// pace is the stages of a job. exact = its step time was measured.
type pace struct {
	stages []sim.Stage
	exact  bool
}

// NewTruth returns the truth of t.
func NewTruth(t *Tables, cl spec.Cluster) *Truth {
	return &Truth{tables: t, cluster: cl, trainings: map[trainingKey]*training{}, stages: map[stagesKey]pace{}, tuned: tunings{}}
}

// training is the epochs of jobs with the same model, batch and number of epochs.
type training struct {
	gains []float64 // by epoch, of a step at the job's batch
	ends  []float64 // steps at the job's batch until the end of each epoch
	work  float64   // steps until the job is done, 0 without a number of epochs
	// counted is the steps until the end of each epoch as counted in training. It
	// differs slightly from ends, which follows from measured gains.
	counted []float64
}

type trainingKey struct {
	model  string
	batch  int
	epochs float64
}

type stagesKey struct {
	model              string
	batch              int       // the job's
	plan               spec.Plan // of the grant; zero if the job chooses its batch
	shape, accelerator string
}

// trainingOf returns the training of j.
func (t *Truth) trainingOf(j *spec.Job) (*training, error) {
	key := trainingKey{j.Model.Name, j.Batch(), j.Epochs}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.trainings[key]; c != nil {
		return c, nil
	}
	c, err := t.tables.training(key)
	if err == nil {
		t.trainings[key] = c
	}
	return c, err
}

// training returns the epochs of jobs with a key.
func (t *Tables) training(key trainingKey) (*training, error) {
	a, ok := t.apps[key.model]
	if !ok {
		return nil, fmt.Errorf("goodput: no table of %q: %w", key.model, errNotCovered)
	}
	return a.training(key.batch, key.epochs)
}

// training returns the epochs of jobs that train a batch for a number of epochs, 0 =
// unknown.
func (a *app) training(batch int, epochs float64) (*training, error) {
	whole := int(math.Ceil(epochs))
	if whole > len(a.ends) {
		return nil, fmt.Errorf("goodput: %s was trained for %d epochs, not %g: %w", a.name, len(a.ends), epochs, errNotCovered)
	}
	gains, err := a.gains(batch)
	if err != nil {
		return nil, err
	}
	c := &training{gains: gains, ends: make([]float64, len(gains))}
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

// Steps returns the work of j. For a job with only a duration it is the steps in that
// time with its own plan and devices, packed, on the first group it may use.
func (t *Truth) Steps(ctx context.Context, j *spec.Job) (float64, error) {
	c, err := t.trainingOf(j)
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
	return 0, fmt.Errorf("job with only a duration: %w", err)
}

// stepsIn returns the number of steps in sec seconds.
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

// StepsPerSec returns the mean speed of j on g over all its work. With the job's own
// batch the speed is constant.
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

// Stages returns a stage per epoch of j under g. The rate is in steps at the job's
// batch B per second. With a plan of batch M and T seconds per step, see stepSec, it is
//
//	rate = gain(M) / (gain(B) * T)
//
// A job that chooses its batch uses the one with the highest rate in each epoch. The
// result is shared: do not change it.
func (t *Truth) Stages(_ context.Context, j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) ([]sim.Stage, error) {
	c, err := t.trainingOf(j)
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

// stages returns the stages of jobs with a fixed batch.
func (t *Tables) stages(key stagesKey, c *training) (out pace, err error) {
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

// elasticStages returns the stages of jobs that choose their batch.
func (t *Truth) elasticStages(key stagesKey, c *training) (out pace, err error) {
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

// Lookups returns the number of look-ups of measured and interpolated step times.
func (t *Truth) Lookups() (exact, interpolated, modelled int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.exact, t.interpolated, 0
}

// EpochsLeft returns the steps left of j after done steps as the oracle of Pollux'
// artifact computes them: the steps counted in training at the job's batch from the end
// of the current epoch to that of the last, and 1 in the last epoch. ok is false for
// jobs without a number of epochs.
func (t *Truth) EpochsLeft(j *spec.Job, done float64) (steps float64, ok bool) {
	c, err := t.trainingOf(j)
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
