package learn

import (
	"math/rand/v2"

	"github.com/pacer-ml/pacer/scheduler/policy/dl2"
)

// sample is an action as a training sample.
type sample struct {
	action
	advantage float64 // advantage over the value of the state
	target    float64 // return from the state on
}

// batch is the samples of one update.
type batch struct {
	form    *dl2.Form
	n       int
	states  []float32
	allowed []bool
	right   []bool // of samples with a teacher
	actions []int
	samples []*sample
	order   []int // scratch: order of columns
}

func (b *batch) begin(f *dl2.Form, size int) {
	b.form, b.n = f, 0
	b.samples, b.actions = b.samples[:0], b.actions[:0]
	if cap(b.states) < size*f.Inputs() {
		b.states = make([]float32, size*f.Inputs())
		b.allowed, b.right = make([]bool, size*f.Actions()), make([]bool, size*f.Actions())
	}
}

// add adds s with its columns in an order drawn from r, because the order of jobs is arbitrary.
func (b *batch) add(s *sample, r *rand.Rand) {
	b.order = b.order[:0]
	for i := range s.seats {
		b.order = append(b.order, i)
	}
	r.Shuffle(len(b.order), func(i, j int) { b.order[i], b.order[j] = b.order[j], b.order[i] })
	inputs, actions := b.form.Inputs(), b.form.Actions()
	state, allowed, right := b.states[b.n*inputs:][:inputs], b.allowed[b.n*actions:][:actions], b.right[b.n*actions:][:actions]
	width, kinds := (inputs-1)/b.form.Jobs, (actions-1)/b.form.Jobs
	copy(state, s.state)
	copy(allowed, s.allowed)
	copy(right, s.right)
	chosen := s.chosen
	for from, to := range b.order {
		copy(state[to*width:][:width], s.state[from*width:])
		copy(allowed[to*kinds:][:kinds], s.allowed[from*kinds:])
		if s.right != nil {
			copy(right[to*kinds:][:kinds], s.right[from*kinds:])
		}
		if s.chosen/kinds == from && s.chosen < actions-1 {
			chosen = to*kinds + s.chosen%kinds
		}
	}
	b.actions, b.samples = append(b.actions, chosen), append(b.samples, s)
	b.n++
}
