package goodput

import (
	"context"
	"slices"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// Oracle has the estimates of a policy for jobs that were profiled before submission, a
// scheduler.Elastic. Step times and present gains are exact. Future gains are unknown,
// since a job can measure the present one only. It is safe for concurrent use.
type Oracle struct {
	scheduler.Oracle // for jobs with a fixed batch
	tables           *Tables

	mu        sync.Mutex
	trainings map[trainingKey]*training
	tuned     tunings
}

var (
	_ scheduler.Elastic = (*Oracle)(nil)
	_ scheduler.Batcher = (*Oracle)(nil)
)

// NewOracle returns the oracle of t.
func NewOracle(t *Tables) *Oracle {
	return &Oracle{Oracle: planner.New(t, planner.Options{Space: Space{t}}), tables: t, trainings: map[trainingKey]*training{}, tuned: tunings{}}
}

// Goodput implements scheduler.Elastic.
func (o *Oracle) Goodput(_ context.Context, j *scheduler.JobState, group *spec.NodeGroup, shape spec.Shape) (spec.Plan, float64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c, err := o.trainingOf(j.Job)
	if err != nil {
		return spec.Plan{}, 0, err
	}
	tuned, err := o.tuned.of(o.tables, tuningKey{j.Job.Model.Name, group.Accelerator.Name, shape.Devices})
	if err != nil {
		return spec.Plan{}, 0, err
	}
	e := c.epoch(j.Done)
	plan := tuned.plans[e]
	plan.Precision = j.Job.Plan.Precision
	return plan, tuned.goodput[e] / c.gains[e], nil
}

// Batches implements scheduler.Batcher.
func (o *Oracle) Batches(j *spec.Job, group *spec.NodeGroup) (least, most int, err error) {
	a, _, err := o.tables.lookup(j.Model.Name, group.Accelerator.Name)
	if err != nil {
		return 0, 0, err
	}
	return a.initial(), a.largest(), nil
}

func (o *Oracle) trainingOf(j *spec.Job) (*training, error) {
	key := trainingKey{j.Model.Name, j.Batch(), j.Epochs}
	if c := o.trainings[key]; c != nil {
		return c, nil
	}
	c, err := o.tables.training(key)
	if err == nil {
		o.trainings[key] = c
	}
	return c, err
}

// epoch returns the epoch of a job after done steps, from 0. The last epoch does not
// end.
func (c *training) epoch(done float64) int {
	e, at := slices.BinarySearch(c.ends, done)
	if at {
		e++
	}
	return min(e, len(c.ends)-1)
}
