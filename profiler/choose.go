package profiler

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// next chooses the next point. ok is false when the run has ended, and then
// r.stopped says why.
func (r *run) next(ctx context.Context) (step Step, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return Step{}, false, err
	}
	left, h := r.left(), r.habits()
	if r.stopped = r.spent(left); r.stopped != "" {
		return Step{}, false, nil
	}
	if r.known() {
		r.stopped = fmt.Sprintf("the intervals are within %.3g %% of the predictions", 100*r.c.Until.Interval)
		return Step{}, false, nil
	}
	affordable, open := r.affordable(left, h)
	switch {
	case open == 0:
		r.stopped = r.exhausted()
		return Step{}, false, nil
	case len(affordable) == 0:
		r.stopped = "budget spent: " + r.tooLittle(left)
		return Step{}, false, nil
	}
	return r.choose(affordable, h), true, nil
}

// exhausted says that no point is left.
func (r *run) exhausted() string {
	if len(r.skips) == 0 {
		return "every point is measured"
	}
	return fmt.Sprintf("nothing is left: %d points measured, %d skipped", len(r.done), len(r.skips))
}

// affordable returns the open points the budget has room for, and how many are
// open in all.
func (r *run) affordable(left [3]float64, h habits) (from []candidate, open int) {
	for _, b := range r.keys {
		for _, i := range b.points {
			if !r.open(i) {
				continue
			}
			open++
			if sec := r.seconds(b, i, h); r.affords(i, sec, left) {
				from = append(from, candidate{belief: b, point: i, sec: sec})
			}
		}
	}
	return from, open
}

// tooLittle says what is left of the budget when no point fits in it.
func (r *run) tooLittle(left [3]float64) string {
	if math.IsInf(left[byWallTime], 1) {
		return fmt.Sprintf("no point fits in the %.3g device-hours left", left[byDeviceTime]/3600)
	}
	return fmt.Sprintf("no point fits in the %s left", time.Duration(left[byWallTime]*float64(time.Second)).Round(time.Second))
}

// known reports whether the intervals are as narrow as wanted: nine in ten of
// every key's points. Keys none of whose points can be run do not count.
func (r *run) known() bool {
	if r.c.Until.Interval <= 0 {
		return false
	}
	for _, b := range r.keys {
		if len(b.space) == 0 {
			continue
		}
		if half, ok := b.known(); !ok || half > math.Log1p(r.c.Until.Interval) {
			return false
		}
	}
	return true
}

// candidate is a point that may be next.
type candidate struct {
	*belief
	point int
	sec   float64 // expected
}

func (r *run) choose(from []candidate, h habits) Step {
	if r.adaptive() {
		return r.chooseAdaptive(from, h)
	}
	byPoint := map[int]candidate{}
	for _, c := range from {
		byPoint[c.point] = c
	}
	for _, i := range r.order {
		if c, ok := byPoint[i]; ok {
			why := "next of the grid"
			if r.c.Choose == Random {
				why = "next of the random order"
			}
			return r.step(c, why)
		}
	}
	panic("profiler: a point is in no order")
}

// step describes the choice of c; gains are of adaptive runs.
func (r *run) step(c candidate, why string) Step {
	return Step{Point: r.points[c.point], Why: why, HalfWidth: c.halves[c.point], Seconds: c.sec}
}

// chooseAdaptive returns the candidate of the greatest worth, the first in
// canonical order of equals; a key nothing was tried of comes before all others.
func (r *run) chooseAdaptive(from []candidate, h habits) Step {
	if i := slices.IndexFunc(from, func(c candidate) bool { return len(c.rows) == 0 }); i >= 0 {
		key := from[i].key
		from = slices.DeleteFunc(slices.Clone(from), func(c candidate) bool { return c.key != key })
	}
	limit, _ := r.binding(h)
	best, worth := from[0], -1.0
	for _, c := range from {
		if w := r.worth(c, limit); w > worth {
			best, worth = c, w
		}
	}
	s := r.step(best, r.why(best, limit))
	s.Gain = best.gains[best.point].Fall
	return s
}

// worth is what measuring c is expected to bring:
//
//	W = chance · Fall / cost
//
//	Fall    expected fall of the mean half width over the key's points, of ln T;
//	        for a family that cannot tell, the half width at c, and before there
//	        is a fit its design first
//	chance  that c can be run, and so teaches anything: half for each row of the
//	        key, up to the last, that came to nothing, and half where the memory
//	        estimate exceeds the device
//	cost    seconds, where wall time is what ends the budget; device-seconds
//	        where device-hours are; 1 where points are, or nothing
func (r *run) worth(c candidate, limit term) float64 {
	w := c.halves[c.point]
	if c.gains != nil {
		g := c.gains[c.point]
		w = max(g.Fall, 0) + 1e-6*g.HalfWidth // the widest of those that teach nothing
	} else if len(c.design) > 0 {
		w = 0.01
		if slices.Contains(c.design, c.point) {
			w = 1
		}
	}
	w = math.Ldexp(w, -min(c.misses, 30))
	if share, ok := memoryShare(r.points[c.point].Config); ok && share > 1 {
		w /= 2
	}
	return w / r.cost(c, limit)
}

func (r *run) cost(c candidate, limit term) float64 {
	switch {
	case c.sec <= 0 || limit == byPoints:
		return 1
	case limit == byDeviceTime:
		return c.sec * float64(r.points[c.point].Config.Plan.Devices())
	}
	return c.sec
}

// why says what is expected of c.
func (r *run) why(c candidate, limit term) string {
	name := c.key.Model
	switch {
	case len(c.rows) == 0:
		return "first of " + name
	case c.gains == nil && len(c.design) > 0:
		return name + ": part of the design before there is a fit"
	case c.gains == nil && len(c.halves) > 0:
		return fmt.Sprintf("widest interval of %s: %s", name, plusMinus(c.halves[c.point]))
	case c.gains == nil:
		return name + ": next in order, there is no fit"
	}
	g := c.gains[c.point]
	per := ""
	switch limit {
	case byWallTime:
		per = ", most per second"
	case byDeviceTime:
		per = ", most per device-second"
	}
	return fmt.Sprintf("mean interval of %s from %s to about %s%s; %s here", name,
		plusMinus(c.mean), plusMinus(max(c.mean-g.Fall, 0)), per, plusMinus(g.HalfWidth))
}

// plusMinus writes a half width of ln T as a share of the prediction.
func plusMinus(half float64) string { return fmt.Sprintf("±%.3g %%", 100*math.Expm1(half)) }

// stepSec returns the predicted step time of a point, 0 if unknown.
func (r *run) stepSec(c spec.Config) float64 {
	b := r.byKey[c.Key()]
	if b == nil {
		return 0
	}
	return b.steps[r.index[r.identity(c)]]
}
