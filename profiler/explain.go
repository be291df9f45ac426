package profiler

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Explain returns how far the run is and the points it would measure next, in
// order, at most n, without measuring any: as if each were measured as
// predicted.
func Explain(ctx context.Context, c Campaign, o Options, n int) (State, []Step, error) {
	if n < 0 {
		return State{}, nil, fmt.Errorf("profiler: explain %d points, want 0 or more", n)
	}
	began := time.Now()
	if o.Now != nil {
		began = o.Now()
	}
	o.Now = func() time.Time { return began } // explaining takes no time of the run
	r, err := newRun(ctx, c, o)
	if err != nil {
		return State{}, nil, err
	}
	_, _, err = r.next(ctx) // for Stopped
	s := r.state()
	var steps []Step
	for len(steps) < n && err == nil {
		step, ok, nextErr := r.next(ctx)
		if err = nextErr; err != nil || !ok {
			break
		}
		steps = append(steps, step)
		r.add(r.asPredicted(step))
		err = r.learn(ctx)
	}
	return s, steps, err
}

// asPredicted is the measurement that is expected of a step.
func (r *run) asPredicted(s Step) spec.Measurement {
	sec := r.stepSec(s.Point.Config)
	if !(sec > 0) {
		sec = 1 // of a point nothing is known of; any value narrows the same intervals
	}
	p, h := r.c.Point.Defaults(), r.habits()
	n := int(p.timed(sec, h))
	m := spec.Measurement{
		Config: s.Point.Config, Outcome: spec.OK, Source: r.c.Source(), At: r.now(), StepSec: make([]float64, max(n, 1)),
	}
	for i := range m.StepSec {
		m.StepSec[i] = sec
	}
	m.Env = r.env(map[string]string{envWarmUp: strconv.Itoa(int(p.warmUp(sec, h)))}, r.number+1, s.Why, s.Seconds)
	return m
}
