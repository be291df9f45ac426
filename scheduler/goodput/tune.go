package goodput

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// tuning is what the best batch on one shape is, by epoch.
type tuning struct {
	goodput []float64 // steps at the initial batch per second that those of the best batch are worth
	plans   []spec.Plan
	exact   bool // all the step times were measured there
}

type tuningKey struct{ model, accelerator, shape string }

// tunings are those asked for so far.
type tunings map[tuningKey]*tuning

func (m tunings) of(t *Tables, key tuningKey) (*tuning, error) {
	if out, ok := m[key]; ok {
		return out, nil
	}
	out, err := t.tune(key)
	if err == nil {
		m[key] = out
	}
	return out, err
}

// tune finds the best batch for each epoch on a shape: of candidates, the one of
// largest gain(M) / T(M), the first of equals. The error wraps
// perfmodel.ErrNotCovered where there is none.
//
// Source: Qiao et al., Pollux, OSDI 2021, section 3.2; petuum/adaptdl at commit
// c793c70, class GoodputFunction.
func (t *Tables) tune(key tuningKey) (*tuning, error) {
	a, s, err := t.lookup(key.model, key.accelerator)
	if err != nil {
		return nil, err
	}
	shape := spec.Shape{Devices: key.shape}
	out := &tuning{goodput: make([]float64, len(a.ends)), plans: make([]spec.Plan, len(a.ends)), exact: s.placement(shape) != nil}
	seen := map[spec.Plan]bool{}
	for _, batch := range a.candidates(s.least * shape.Total()) {
		plan, ok := t.split(a, s, batch, shape)
		if !ok || seen[plan] {
			continue
		}
		seen[plan] = true
		sec, err := s.stepSec(plan, shape)
		if err != nil {
			continue // nothing was measured that it could follow from
		}
		gains, err := a.gains(plan.GlobalBatch())
		if err != nil {
			return nil, err
		}
		for e, gain := range gains {
			if v := gain / (sec * t.slowdown(a.name)); v > out.goodput[e] {
				out.goodput[e], out.plans[e] = v, plan
			}
		}
	}
	if len(seen) == 0 || !(out.goodput[0] > 0) {
		return nil, fmt.Errorf("goodput: %s on %s: no batch was measured that could run there: %w", s.what, shape, errNotCovered)
	}
	return out, nil
}

// candidates are the batches that are tried: a geometric series from the initial
// one, or the least that gives every device its share, to the largest.
func (a *app) candidates(least int) []float64 {
	return geometric(float64(max(a.initial(), least)), float64(a.largest()))
}

// split returns how about so many samples are trained on a shape: as Plan does, in
// micro-batches that were measured there. ok is false where that cannot be.
func (t *Tables) split(a *app, s *speeds, batch float64, shape spec.Shape) (p spec.Plan, ok bool) {
	devices, most, limit := shape.Total(), s.most, t.limit(a.name, s)
	if p := s.placement(shape); p != nil {
		most = int(p.local[len(p.local)-1])
	}
	if limit.Local > 0 {
		most = min(most, limit.Local)
	}
	if devices < 1 || limit.Devices > 0 && devices > limit.Devices {
		return p, false
	}
	micro, accum := splitShare(batch/float64(devices), most, devices == 1 && batch > float64(a.initial()))
	micro = min(micro, a.largest()/(devices*accum))
	p = spec.Plan{DP: devices, MicroBatch: micro, AccumSteps: accum}.Normal()
	return p, micro >= s.least && p.GlobalBatch() >= a.initial()
}
