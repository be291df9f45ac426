package profiler

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Explain returns the state of the run and the next points that it would measure, in order, at most n. It
// measures none: it assumes that the points take one standard deviation more and less than predicted, in turn, so that
// later intervals are as wide as if the predictions were as wrong as they are expected to be. The points can also be
// measured at the same time, by n machines.
func Explain(ctx context.Context, c Campaign, o Options, n int) (State, []Step, error) {
	if n < 0 {
		return State{}, nil, fmt.Errorf("profiler: explain %d points, want 0 or more", n)
	}
	began := time.Now()
	if o.Now != nil {
		began = o.Now()
	}
	o.Now = func() time.Time { return began } // time stands still, so that explaining uses no budget
	r, err := newRun(ctx, c, o)
	if err != nil {
		return State{}, nil, err
	}
	_, _, err = r.next(ctx) // sets Stopped
	s := r.state()
	var steps []Step
	for len(steps) < n && err == nil {
		step, ok, nextErr := r.next(ctx)
		if err = nextErr; err != nil || !ok {
			break
		}
		steps = append(steps, step)
		r.add(r.asPredicted(step))
		err = r.refit(ctx)
	}
	return s, steps, err
}

// asPredicted returns the measurement that is assumed for a step.
func (r *run) asPredicted(s Step) spec.Measurement {
	sec := r.stepSec(s.Point.Config)
	off := math.Exp(s.HalfWidth / stats.Normal90)
	switch {
	case !(sec > 0):
		sec = 1 // unknown; any value narrows the intervals equally
	case r.number%2 == 0 && off < 10:
		sec *= off
	case off < 10:
		sec /= off
	}
	p, h := r.c.Point.Defaults(), r.costModel()
	n := int(p.timed(sec, h))
	m := spec.Measurement{
		Config: s.Point.Config, Outcome: spec.OK, Source: r.c.Source(), At: r.now(), StepSec: make([]float64, max(n, 1)),
	}
	for i := range m.StepSec {
		m.StepSec[i] = sec
	}
	m.Env = r.env(map[string]string{EnvWarmUp: strconv.Itoa(int(p.warmUp(sec, h)))}, r.number+1, s.Why, s.Seconds)
	return m
}

// Estimate returns the state of the run and the open points in canonical order, and those to be measured once more,
// each with the expected seconds that it holds its devices. Why and Gain are empty.
func Estimate(ctx context.Context, c Campaign, o Options) (State, []Step, error) {
	r, err := newRun(ctx, c, o)
	if err != nil {
		return State{}, nil, err
	}
	h := r.costModel()
	var steps []Step
	for i, p := range r.points {
		if k := r.byKey[p.Config.Key()]; r.open(i) || r.pending(i) {
			steps = append(steps, Step{Point: p, HalfWidth: k.halves[i], Seconds: r.seconds(k, i, h)})
		}
	}
	return r.state(), steps, nil
}
