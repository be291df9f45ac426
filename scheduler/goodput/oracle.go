package goodput

import (
	"context"
	"slices"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// Oracle is the belief that the tables are true, a scheduler.Elastic: what a
// policy knows whose jobs were profiled before they came. It knows what a step is
// worth at present, as a job that trains can measure, and not what it will be.
type Oracle struct {
	scheduler.Oracle // of jobs that train their own batch
	tables           *Tables

	mu      sync.Mutex
	courses map[courseKey]*course
	tuned   tunings
}

var (
	_ scheduler.Elastic = (*Oracle)(nil)
	_ scheduler.Batcher = (*Oracle)(nil)
)

// NewOracle returns the belief that t is true.
func NewOracle(t *Tables) *Oracle {
	return &Oracle{Oracle: planner.New(t, planner.Options{Space: Space{t}}), tables: t, courses: map[courseKey]*course{}, tuned: tunings{}}
}

// Goodput implements scheduler.Elastic.
func (o *Oracle) Goodput(_ context.Context, j *scheduler.JobState, group *spec.NodeGroup, shape spec.Shape) (spec.Plan, float64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c, err := o.courseOf(j.Job)
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

func (o *Oracle) courseOf(j *spec.Job) (*course, error) {
	key := courseKey{j.Model.Name, j.Batch(), j.Epochs}
	if c := o.courses[key]; c != nil {
		return c, nil
	}
	c, err := o.tables.course(key)
	if err == nil {
		o.courses[key] = c
	}
	return c, err
}

// epoch returns the epoch, from 0, that a job is in which has done so many steps:
// the last one for good.
func (c *course) epoch(done float64) int {
	e, at := slices.BinarySearch(c.ends, done)
	if at {
		e++
	}
	return min(e, len(c.ends)-1)
}
