package schedulertest

import (
	"context"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// Pupil is a belief about a World that learns: every speed is wrong at first, and
// what it is told it believes.
type Pupil struct {
	*planner.Planner
	space    []spec.Config
	believed *World
	times    map[spec.Key]int
}

// Pupil returns one that errs as Oracle does.
func (w *World) Pupil(sigma float64, seed uint64) *Pupil {
	p := &Pupil{space: w.order, believed: w.wrong(sigma, seed), times: map[spec.Key]int{}}
	p.rethink()
	return p
}

func (p *Pupil) rethink() {
	p.Planner = planner.New(p.believed, planner.Options{Space: planner.NewMeasured(p.space)})
}

// Learn implements scheduler.Learner.
func (p *Pupil) Learn(_ context.Context, _ time.Duration, seen []spec.Measurement) error {
	for _, m := range seen {
		c := &m.Config
		p.believed.Add(c.Model.Name, c.Accelerator.Name, c.Plan, c.Shape, 1/m.MedianStepSec())
		p.times[c.Key()]++
	}
	if len(seen) > 0 {
		p.rethink()
	}
	return nil
}

// Revision implements scheduler.Learner.
func (p *Pupil) Revision(k spec.Key) int { return p.times[k] }

// Allows implements scheduler.ServerSpace.
func (p *Pupil) Allows(c spec.Config) bool { return p.believed.Allows(c) }

// Learned implements scheduler.Learner.
func (p *Pupil) Learned() (l scheduler.Learned) {
	for _, n := range p.times {
		l.Seen += n
	}
	return l
}

var _ scheduler.Learner = (*Pupil)(nil)
