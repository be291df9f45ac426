package profiler

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Assumed cost of a point before any measurement: seconds to launch and import, or to build the network of one rank alone
// in the process that measures all of them; steps of warm-up, and steps timed.
const (
	launchCPU   = 5.0
	launchOther = 15.0
	launchAlone = 0.5
	warmUpSteps = 6
	timedSteps  = 20
)

// costModel predicts the cost of a point from the points measured so far.
type costModel struct {
	overhead float64 // seconds per point besides its steps
	alone    float64 // the same of one rank alone
	warmUp   float64 // warm-up steps
	steps    float64 // timed steps
	wall     float64 // mean seconds per point, 0 = none measured
	device   float64 // mean device-seconds per point
}

func (r *run) costModel() costModel {
	h := costModel{overhead: launchOther, alone: launchAlone, warmUp: warmUpSteps, steps: timedSteps}
	switch {
	case r.simulated():
		h.overhead, h.warmUp = r.c.Runner.Delay.Seconds(), 0
		h.alone = h.overhead
	case r.o.Machine.CPU:
		h.overhead = launchCPU
	}
	var over, alone, warm, steps []float64
	for _, m := range r.rows {
		wall, timed := HeldSec(m), 0.0
		h.wall += wall / float64(len(r.rows))
		h.device += wall * float64(m.Config.RunDevices()) / float64(len(r.rows))
		if m.Outcome != spec.OK || len(m.StepSec) == 0 {
			continue
		}
		for _, t := range m.StepSec {
			timed += t
		}
		n := float64(len(m.StepSec))
		w := warmUpOf(m)
		warm, steps = append(warm, w), append(steps, n)
		if besides := max(wall-timed*(1+w/n), 0); m.Config.Alone() {
			alone = append(alone, besides)
		} else {
			over = append(over, besides)
		}
	}
	if len(over) > 0 {
		h.overhead = stats.Median(over)
	}
	if len(alone) > 0 {
		h.alone = stats.Median(alone)
	}
	if len(steps) > 0 {
		h.warmUp, h.steps = stats.Median(warm), stats.Median(steps)
	}
	return h
}

// seconds returns the expected time that point i of k holds its devices, 0 if unknown.
func (r *run) seconds(k *keyState, i int, h costModel) float64 {
	p := r.c.Point.Defaults()
	step, ok := k.steps[i]
	if !ok {
		return min(h.wall, p.Timeout.Seconds())
	}
	overhead := h.overhead
	if i < len(r.points) && r.points[i].Config.Alone() {
		overhead = h.alone
	}
	return min(overhead+step*(p.warmUp(step, h)+p.timed(step, h)), p.Timeout.Seconds())
}

// warmUpOf returns the number of warm-up steps of m, 0 if unknown.
func warmUpOf(m spec.Measurement) float64 {
	n, err := strconv.Atoi(m.Env[EnvWarmUp])
	if err != nil {
		return 0
	}
	return float64(max(n, 0))
}

// warmUp returns the expected number of warm-up steps of step seconds each. All but the first take
// at most half of MaxTime.
func (p PointOptions) warmUp(step float64, h costModel) float64 {
	if most := p.MaxTime.Seconds() / 2; (h.warmUp-1)*step > most {
		return 1 + math.Ceil(most/step)
	}
	return h.warmUp
}

// timed returns the expected number of timed steps of step seconds each.
func (p PointOptions) timed(step float64, h costModel) float64 {
	n := min(max(h.steps, float64(p.MinSteps)), float64(p.MaxSteps))
	if most := p.MaxTime.Seconds(); n*step > most {
		n = max(math.Ceil(most/step), float64(p.MinSteps))
	}
	return n
}

// A budgetTerm is a quantity that a budget limits.
type budgetTerm int

const (
	byPoints budgetTerm = iota
	byDeviceTime
	byWallTime
)

// left returns the remaining budget by term, +Inf without a limit: points, device-seconds, seconds.
func (r *run) left() [3]float64 {
	l := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
	if n := r.c.Budget.Points; n > 0 {
		l[byPoints] = float64(n - r.measured())
	}
	if h := r.c.Budget.DeviceHours; h > 0 {
		l[byDeviceTime] = h*3600 - r.deviceSec()
	}
	if w := r.c.Budget.Wall; w > 0 {
		l[byWallTime] = w.Seconds() - r.wallSec()
	}
	return l
}

// bindingTerm returns the budget term that runs out first at the mean cost so far, and the number of points
// that it allows.
func (r *run) bindingTerm(h costModel) (budgetTerm, float64) {
	l := r.left()
	best, n := byPoints, l[byPoints]
	wall, device := h.wall, h.device
	if len(r.rows) == 0 {
		wall, device = r.expectedMeans(h)
	}
	for _, t := range []struct {
		budgetTerm
		each float64
	}{{byDeviceTime, device}, {byWallTime, wall}} {
		if t.each > 0 && l[t.budgetTerm]/t.each < n {
			best, n = t.budgetTerm, l[t.budgetTerm]/t.each
		}
	}
	return best, n
}

// expectedMeans returns the expected mean cost of the open points: seconds and device-seconds.
func (r *run) expectedMeans(h costModel) (wall, device float64) {
	n := 0.0
	for _, k := range r.keys {
		for _, i := range k.points {
			if r.open(i) || r.pending(i) {
				sec := r.seconds(k, i, h)
				wall, device, n = wall+sec, device+sec*float64(r.points[i].Config.RunDevices()), n+1
			}
		}
	}
	return wall / max(n, 1), device / max(n, 1)
}

// eta returns the expected seconds until the run ends: the points that the budget still allows, at the measured
// mean cost, or the expected one before any measurement.
func (r *run) eta() float64 {
	h := r.costModel()
	wall := h.wall
	if len(r.rows) == 0 {
		wall, _ = r.expectedMeans(h)
	}
	_, n := r.bindingTerm(h)
	open, pending := 0.0, 0.0
	for i := range r.points {
		switch {
		case r.open(i):
			open++
		case r.pending(i):
			pending++
		}
	}
	return max((min(n, open)+pending)*wall, 0)
}

// fitsBudget reports whether point i, expected to take sec seconds, fits in the budget.
func (r *run) fitsBudget(i int, sec float64, left [3]float64) bool {
	d := float64(r.points[i].Config.RunDevices())
	return left[byPoints] >= 1 && left[byDeviceTime] > 0 && left[byWallTime] > 0 &&
		sec*d <= left[byDeviceTime] && sec <= left[byWallTime]
}

// spent returns which term of the budget is used up, as a text, "" if none.
func (r *run) spent(left [3]float64) string {
	b := r.c.Budget
	switch {
	case left[byPoints] < 1:
		return fmt.Sprintf("budget spent: %d points", b.Points)
	case left[byDeviceTime] <= 0:
		return fmt.Sprintf("budget spent: %g device-hours", b.DeviceHours)
	case left[byWallTime] <= 0:
		return fmt.Sprintf("budget spent: %s of wall time", b.Wall.Round(time.Second))
	}
	return ""
}
