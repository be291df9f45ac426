package profiler

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// next chooses the next point. ok is false if the run has ended; r.stopped then has the reason.
func (r *run) next(ctx context.Context) (step Step, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return Step{}, false, err
	}
	left, h := r.left(), r.costModel()
	if r.intervalsReached() {
		r.stopped = fmt.Sprintf("the intervals are within %.3g %% of the predictions", 100*r.c.Until.Interval)
		return Step{}, false, nil
	}
	retries, reserve := r.retries(h)
	affordable, open := r.affordable(minus(left, reserve), h)
	if len(affordable) > 0 {
		return r.choose(affordable, h), true, nil
	}
	if step, ok := r.nextRetry(retries, left); ok {
		return step, true, nil
	}
	switch r.stopped = r.spent(left); {
	case r.stopped != "":
	case open == 0:
		r.stopped = r.exhaustedReason()
	default:
		r.stopped = "budget spent: " + r.budgetLeft(left)
	}
	return Step{}, false, nil
}

// minus returns the budget that is left after reserve.
func minus(left, reserve [3]float64) [3]float64 {
	for t := range left {
		left[t] -= reserve[t]
	}
	return left
}

// exhaustedReason is State.Stopped of a run without open points.
func (r *run) exhaustedReason() string {
	if len(r.skips) == 0 {
		return "every point is measured"
	}
	return fmt.Sprintf("no point is left: %d points measured, %d skipped", len(r.done), len(r.skips))
}

// affordable returns the open points that fit in the budget, and the number of all open points.
func (r *run) affordable(left [3]float64, h costModel) (from []candidate, open int) {
	for _, b := range r.keys {
		for _, i := range b.points {
			if !r.open(i) {
				continue
			}
			open++
			if sec := r.seconds(b, i, h); r.fitsBudget(i, sec, left) {
				from = append(from, candidate{keyState: b, point: i, sec: sec})
			}
		}
	}
	return from, open
}

// budgetLeft describes the rest of a budget in which no point fits.
func (r *run) budgetLeft(left [3]float64) string {
	if math.IsInf(left[byWallTime], 1) {
		return fmt.Sprintf("no point fits in the %.3g device-hours left", left[byDeviceTime]/3600)
	}
	return fmt.Sprintf("no point fits in the %s left", time.Duration(left[byWallTime]*float64(time.Second)).Round(time.Second))
}

// intervalsReached reports whether nine in ten points of every key have intervals as narrow as
// wanted. Keys without a runnable point do not count.
func (r *run) intervalsReached() bool {
	if r.c.Until.Interval <= 0 {
		return false
	}
	for _, b := range r.keys {
		if len(b.space) == 0 {
			continue
		}
		if half, ok := b.halfWidth90(); !ok || half > math.Log1p(r.c.Until.Interval) {
			return false
		}
	}
	return true
}

// candidate is an open point that fits in the budget.
type candidate struct {
	*keyState
	point int
	sec   float64 // expected seconds
}

func (r *run) choose(from []candidate, h costModel) Step {
	if r.adaptive() {
		return r.chooseAdaptive(from, h)
	}
	byPoint := map[int]candidate{}
	without := slices.DeleteFunc(slices.Clone(from), func(c candidate) bool { return len(c.rows) > 0 })
	if r.c.Choose == Random && len(without) > 0 && r.short(h) {
		from = without
	}
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

// step describes the choice of c; adaptive runs add the gain.
func (r *run) step(c candidate, why string) Step {
	return Step{Point: r.points[c.point], Why: why, HalfWidth: c.halves[c.point], Seconds: c.sec}
}

// chooseAdaptive returns the candidate of the highest score; ties go to the first in canonical
// order. A group without rows comes before all others, then an overdue key.
func (r *run) chooseAdaptive(from []candidate, h costModel) Step {
	short := r.short(h)
	if i := slices.IndexFunc(from, func(c candidate) bool { return c.unmeasured() }); i >= 0 {
		first := from[i].fitGroup
		from = slices.DeleteFunc(slices.Clone(from), func(c candidate) bool { return c.fitGroup != first })
	} else if i := slices.IndexFunc(from, func(c candidate) bool { return c.overdue(short) }); i >= 0 {
		first := from[i].keyState
		from = slices.DeleteFunc(slices.Clone(from), func(c candidate) bool { return c.keyState != first })
	}
	limit, _ := r.bindingTerm(h)
	value, misled := r.value, r.misled()
	if misled != "" {
		far := r.distances()
		value = func(c candidate) float64 { return far[c.point] }
	}
	best, score := from[0], -1.0
	for _, c := range from {
		if w := r.score(c, value(c), limit); w > score {
			best, score = c, w
		}
	}
	why := r.why(best, limit, short)
	if misled != "" && !best.unmeasured() && !best.overdue(short) {
		why = misled + ": farthest from the measured points" + most(limit)
	}
	s := r.step(best, why)
	s.Gain = best.gains[best.point].Fall
	return s
}

// value is what measuring c is expected to bring while the intervals predict the errors: the fall of the mean half width
// of ln T over the points of the key, of all models if the family is fitted to all at once, or of Options.For. For a family
// without Gain it is the half width at c, and before its first fit the points of its design are first.
func (r *run) value(c candidate) float64 {
	switch {
	case c.gains != nil:
		g := c.gains[c.point]
		return max(g.Fall, 0) + 1e-6*g.HalfWidth // the widest interval breaks ties between gains of 0
	case len(c.design) == 0:
		return c.halves[c.point]
	case slices.Contains(c.design, c.point):
		return 1
	}
	return 0.01
}

// score weights the value of measuring c:
//
//	W = chance · value / cost
//
//	value   see value; the distance to the nearest measured point while the intervals
//	        mislead, see misled
//	chance  that c runs: halved for each row of the key since the last OK one,
//	        and again if the memory estimate exceeds the device
//	cost    seconds if wall time ends the budget, device-seconds if device-hours
//	        do, else 1
func (r *run) score(c candidate, value float64, limit budgetTerm) float64 {
	w := math.Ldexp(value, -min(c.misses, 30))
	if share, ok := memoryShare(r.points[c.point].Config); ok && share > 1 {
		w /= 2
	}
	return w / r.cost(c, limit)
}

func (r *run) cost(c candidate, limit budgetTerm) float64 {
	switch {
	case c.sec <= 0 || limit == byPoints:
		return 1
	case limit == byDeviceTime:
		return c.sec * float64(r.points[c.point].Config.RunDevices())
	}
	return c.sec
}

// why describes what measuring c is expected to bring.
func (r *run) why(c candidate, limit budgetTerm, short bool) string {
	name := c.key.Model
	switch {
	case c.unmeasured() || c.overdue(short):
		return "first of " + name
	case c.gains == nil && len(c.design) > 0:
		return name + ": part of the design before there is a fit"
	case c.gains == nil && len(c.halves) > 0:
		return fmt.Sprintf("widest interval of %s: %s", name, plusMinus(c.halves[c.point]))
	case c.gains == nil:
		return name + ": next in order, there is no fit"
	}
	g := c.gains[c.point]
	switch n := len(c.keys); {
	case c.wanted != nil:
		name = spec.Count(len(c.wanted), "wanted plan")
	case n > 1:
		name = fmt.Sprintf("all %d models", n)
	}
	return fmt.Sprintf("mean interval of %s from %s to about %s%s; %s here", name,
		plusMinus(c.mean), plusMinus(max(c.mean-g.Fall, 0)), most(limit), plusMinus(g.HalfWidth))
}

// most says per what the value is highest.
func most(limit budgetTerm) string {
	switch limit {
	case byWallTime:
		return ", most per second"
	case byDeviceTime:
		return ", most per device-second"
	}
	return ""
}

// plusMinus formats a half width of ln T as a share of the prediction.
func plusMinus(half float64) string { return fmt.Sprintf("±%.3g %%", 100*math.Expm1(half)) }

// stepSec returns the predicted step time of a point, 0 if unknown.
func (r *run) stepSec(c spec.Config) float64 {
	k := r.byKey[c.Key()]
	if k == nil {
		return 0
	}
	return k.steps[r.index[r.identity(c)]]
}
