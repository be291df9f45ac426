package policy

import "math"

// explain says of who is asked for why it waits, or runs as it does.
func (r *round) explain() {
	for j := range r.d.Unexplained(r.s) {
		for _, t := range r.tasks {
			switch {
			case t.JobState != j:
			case t.grant == nil:
				r.whyWaits(t)
			default:
				r.whyStays(t)
			}
		}
	}
}

// whyWaits says what keeps t waiting.
func (r *round) whyWaits(t *task) {
	if t.best == nil {
		r.why(t, "no way to run it is known")
		return
	}
	n := t.best.devices
	wait, _ := r.earliest(t, t.best)
	switch chosen, ok := r.choose(t, math.Inf(1)); {
	case math.IsInf(wait, 1):
		r.why(t, "no room for %d devices, even once all end that run", n)
	case t.blind:
		r.why(t, "nothing is predicted of it: waits for %d devices as submitted, %.0f s by what is believed", n, wait)
	case !r.shrinks:
		r.why(t, "best on %d devices, in %.0f s; nobody is to shrink for it", n, wait)
	case !ok:
		r.why(t, "best on %d devices, in %.0f s: guarantees and restart budgets leave nobody to shrink for it", n, wait)
	default:
		r.why(t, "slope %.3g < %.3g s per device: others would lose more by making room than it by waiting %.0f s for %d devices",
			wait/t.best.load, total(chosen)/t.best.load, wait, n)
	}
}

// whyStays says why t, which runs, is not changed.
func (r *round) whyStays(t *task) {
	switch {
	case t.now == nil:
		r.why(t, "runs as submitted: nothing is predicted of how")
		return
	case !t.spare:
		r.why(t, "restart budget binds: restart %d would take more than %.3g of its run", t.Restarts+1, r.budget)
		return
	}
	most := growth{gain: math.Inf(-1)}
	for i := range t.options {
		if g, ok := r.growth(t, &t.options[i]); ok && g.gain > most.gain {
			most = g
		}
	}
	switch cost := t.StartCost.Seconds(); {
	case most.to == nil:
		r.why(t, "no devices are free that it could use")
	case t.in(most.to) >= t.left:
		r.why(t, "no other way ends sooner: on %s in %.0f s, as it is in %.0f", sizeText(most.to), t.in(most.to), t.left)
	case most.gain < r.gate*cost:
		r.why(t, "gate: %s would gain %.0f s, less than %.3g start costs of %.0f s", sizeText(most.to), most.gain, r.gate, cost)
	default:
		r.why(t, "%s would gain %.0f s, and has no room", sizeText(most.to), most.gain)
	}
}
