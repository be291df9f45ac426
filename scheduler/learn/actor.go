package learn

import (
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/nn"
	"github.com/pacer-ml/pacer/scheduler/policy/dl2"
)

// actor draws actions by the probabilities of a network, and records them.
type actor struct {
	net     nn.Net
	form    *dl2.Form
	stream  *rand.Rand
	explore float64 // probability of a corrective action, see corrective
	to      *observer

	scratch nn.Scratch
	probs   []float32
}

func (a *actor) Choose(v *dl2.View) (int, error) {
	a.probs = append(a.probs[:0], a.net.Infer(&a.scratch, v.State)...)
	nn.Softmax(a.probs, a.probs, v.Allowed)
	forced, share := -1, 0.0
	if a.explore > 0 {
		if forced = corrective(a.form, v); forced >= 0 {
			share = a.explore
		}
	}
	chosen := forced
	if forced < 0 || a.stream.Float64() >= share {
		chosen = pick(a.probs, a.stream.Float64(), v.Void)
	}
	prob := (1 - share) * float64(a.probs[chosen])
	if chosen == forced {
		prob += share
	}
	a.to.note(v, chosen, prob)
	if a.to.reward == PerAction && chosen != v.Void {
		kinds := (len(v.Allowed) - 1) / a.form.Jobs
		a.to.chosen[len(a.to.chosen)-1].extra = v.Seats[chosen/kinds].Worth(chosen%kinds) * a.form.SlotSec
	}
	return chosen, nil
}

// note records a chosen action.
func (o *observer) note(v *dl2.View, chosen int, prob float64) {
	o.chosen = append(o.chosen, action{
		state: slices.Clone(v.State), allowed: slices.Clone(v.Allowed), seats: len(v.Seats), chosen: chosen, prob: prob,
	})
}

// pick returns the action for u in [0, 1) by inverse transform sampling.
func pick(probs []float32, u float64, last int) int {
	for i, p := range probs {
		if u -= float64(p); u < 0 && p > 0 {
			return i
		}
	}
	return last
}

// Actions of a column for jobs with parameter servers.
const (
	oneWorker = iota
	oneServer
	oneOfEach
)

// unbalanced is the ratio of workers to servers, or of devices between jobs, that triggers a correction (DL2, section
// 5.3).
const unbalanced = 10

// corrective returns an action that helps a job in an unbalanced state, -1 if there is none. With parameter servers
// that is a job with more than ten times as many workers as servers, or the reverse. Otherwise it is a job without
// devices while another has more than ten times its first allocation.
func corrective(f *dl2.Form, v *dl2.View) int {
	most := 0
	for i := range v.Seats {
		most = max(most, v.Seats[i].Workers)
	}
	for i := range v.Seats {
		s := &v.Seats[i]
		w, u := s.Workers, s.Servers
		a := -1
		switch {
		case !f.Servers && w == 0 && s.Next > 0 && most > unbalanced*s.Next:
			a = i
		case !f.Servers:
		case w > unbalanced*u:
			a = 3*i + oneServer
		case u > unbalanced*w:
			a = 3*i + oneWorker
		}
		if a >= 0 && v.Allowed[a] {
			return a
		}
	}
	return -1
}
