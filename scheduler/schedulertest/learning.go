package schedulertest

import (
	"context"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// LearningOracle is an oracle of a World that learns. Speeds are wrong at first, and
// replaced by observed ones.
type LearningOracle struct {
	*planner.Planner
	space     []spec.Config
	estimated *World
	times     map[spec.Key]int // number of observations
}

// LearningOracle returns an oracle with the errors of Oracle at first.
func (w *World) LearningOracle() *LearningOracle {
	p := &LearningOracle{space: w.order, estimated: w.wrong(0.5, 7), times: map[spec.Key]int{}}
	p.update()
	return p
}

func (p *LearningOracle) update() {
	p.Planner = planner.New(p.estimated, planner.Options{Space: planner.NewMeasured(p.space)})
}

// Learn implements scheduler.Learner.
func (p *LearningOracle) Learn(_ context.Context, _ time.Duration, seen []spec.Measurement) error {
	for _, m := range seen {
		c := &m.Config
		p.estimated.Add(c.Model.Name, c.Accelerator.Name, c.Plan, c.Shape, 1/m.MedianStepSec())
		p.times[c.Key()]++
	}
	if len(seen) > 0 {
		p.update()
	}
	return nil
}

// Revision implements scheduler.Learner.
func (p *LearningOracle) Revision(k spec.Key) int { return p.times[k] }

// Allows implements scheduler.ServerSpace.
func (p *LearningOracle) Allows(c spec.Config) bool { return p.estimated.Allows(c) }

// Learned implements scheduler.Learner.
func (p *LearningOracle) Learned() (l scheduler.Learned) {
	for _, n := range p.times {
		l.Seen += n
	}
	return l
}

var _ scheduler.Learner = (*LearningOracle)(nil)
