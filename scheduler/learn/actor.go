package learn

import (
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/nn"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// actor draws actions by the probabilities of a network, and notes them.
type actor struct {
	net     nn.Net
	form    *policy.DL2Form
	stream  *rand.Rand
	explore float64 // probability with which a lopsided job is helped, see lopsided
	to      *observer

	scratch nn.Scratch
	probs   []float32
}

func (a *actor) Choose(v *policy.DL2View) (int, error) {
	a.probs = append(a.probs[:0], a.net.Infer(&a.scratch, v.State)...)
	nn.Softmax(a.probs, a.probs, v.Allowed)
	forced, share := -1, 0.0
	if a.explore > 0 {
		if forced = lopsided(a.form, v); forced >= 0 {
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

// note keeps what was chosen.
func (o *observer) note(v *policy.DL2View, chosen int, prob float64) {
	o.chosen = append(o.chosen, action{
		state: slices.Clone(v.State), allowed: slices.Clone(v.Allowed), seats: len(v.Seats), chosen: chosen, prob: prob,
	})
}

// pick returns the action that u in [0, 1) falls on.
func pick(probs []float32, u float64, last int) int {
	for i, p := range probs {
		if u -= float64(p); u < 0 && p > 0 {
			return i
		}
	}
	return last
}

// Actions for a column of jobs with parameter servers.
const (
	oneWorker = iota
	oneServer
	oneOfEach
)

// unbalanced is how many times as many of one kind as of another are too many
// (DL2, section 5.3).
const unbalanced = 10

// lopsided returns the action that helps a job which cannot be meant to be as it is,
// -1 if there is none: of those with parameter servers one that has workers or
// servers alone, or more than ten times as many of one as of the other; without, one
// that has nothing while another has more than ten times what it would begin with.
func lopsided(f *policy.DL2Form, v *policy.DL2View) int {
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
