package goodput

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// tuning is the best batch on one shape, by epoch.
type tuning struct {
	goodput []float64   // steps at the initial batch per second
	plans   []spec.Plan // plans of the best batch
	exact   bool        // the shape was measured
}

type tuningKey struct{ model, accelerator, shape string }

// tunings caches tunings.
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

// tune returns the best batch for each epoch on a shape: the candidate with the largest
// gain(M) / T(M), the first of equals. Without a candidate the error wraps
// perfmodel.ErrNotCovered.
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
	for _, batch := range a.candidates(s.minLocal * shape.Total()) {
		plan, ok := t.split(a, s, batch, shape)
		if !ok || seen[plan] {
			continue
		}
		seen[plan] = true
		sec, err := s.stepSec(plan, shape)
		if err != nil {
			continue // outside of the measured range
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
		return nil, fmt.Errorf("goodput: %s on %s: no measured batch fits: %w", s.what, shape, errNotCovered)
	}
	return out, nil
}

// candidates returns the batches to try: a geometric series from the initial batch, or
// from least if that is larger, to the largest batch.
func (a *app) candidates(least int) []float64 {
	return geometric(float64(max(a.initial(), least)), float64(a.largest()))
}

// split returns a plan for a batch of about the given size on a shape, by the rules of
// Plan, with micro-batches that were measured there. ok is false if none fits.
func (t *Tables) split(a *app, s *speeds, batch float64, shape spec.Shape) (p spec.Plan, ok bool) {
	devices, most, limit := shape.Total(), s.maxLocal, t.limit(a.name, s)
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
	return p, micro >= s.minLocal && p.GlobalBatch() >= a.initial()
}
