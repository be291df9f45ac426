package rubick

import (
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// explain adds the reasons of jobs that wait or do not change.
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

// whyWaits adds the reason why t waits.
func (r *round) whyWaits(t *task) {
	if t.best == nil {
		r.why(t, "it can run in no configuration")
		return
	}
	size := spec.Count(t.best.Devices, "device")
	wait, _ := r.earliest(t, t.best)
	switch chosen, ok := r.choose(t, math.Inf(1)); {
	case math.IsInf(wait, 1):
		r.why(t, "no room for %s even after all running jobs have ended", size)
	case t.unpredicted:
		r.why(t, "no prediction: as submitted it waits for %s, an estimated %.0f s", size, wait)
	case !r.shrinks:
		r.why(t, "is best on %s, which are free in %.0f s; no job shrinks for it", size, wait)
	case !ok:
		r.why(t, "is best on %s, which are free in %.0f s; guarantees and restart budgets leave no job to shrink for it", size, wait)
	default:
		r.why(t, "slope %.3g < %.3g s per device: making room would cost others %.0f s, waiting for %s costs it %.0f s",
			wait/t.best.Load, total(chosen)/t.best.Load, total(chosen), size, wait)
	}
}

// whyStays adds the reason why running task t does not change.
func (r *round) whyStays(t *task) {
	switch {
	case t.now == nil || t.unpredicted:
		r.why(t, "runs as submitted: no prediction")
		return
	case !t.mayRestart:
		r.why(t, "restart budget binds: with restart %d the start costs would be more than %.3g %% of its run", t.Restarts+1, 100*r.budget)
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
	case t.runTime(most.to) >= t.left:
		r.why(t, "no other configuration ends sooner: on %s in %.0f s, at present in %.0f s", sizeText(most.to), t.runTime(most.to), t.left)
	case most.gain < r.gate*cost:
		r.why(t, "gate: on %s it would %s, and a change has to gain %.0f s, %.3g times its start cost", sizeText(most.to), gains(most.gain), r.gate*cost, r.gate)
	default:
		r.why(t, "on %s it would %s, but that does not fit", sizeText(most.to), gains(most.gain))
	}
}

// gains writes what a change gains, in seconds, or loses.
func gains(sec float64) string {
	if sec < 0 {
		return fmt.Sprintf("lose %.0f s", -sec)
	}
	return fmt.Sprintf("gain %.0f s", sec)
}
