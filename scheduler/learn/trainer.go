package learn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/pacer-ml/pacer/scheduler/internal/nn"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// ErrDiverged says that a loss was not finite: training stopped, and what was saved
// before is the last that is good.
var ErrDiverged = nn.ErrDiverged

// Point is a point of the learning curve.
type Point struct {
	Phase  string // "supervised" or "reinforced"
	Update int    // within the phase, from 1; of the latter an iteration
	Of     int
	Losses
	Reward  float64 // per job of the iteration's episodes, as rewarded and without discount
	JCTSec  float64 // mean completion time on the validation episodes, 0 = was not tried
	Teacher float64 // that of the teacher there, 0 = there is none
	Agrees  float64 // share of its actions there, in the supervised phase, that lead to what the teacher would decide
	Best    bool    // the policy is kept, as the best so far
}

// Losses are means over the updates of a point.
type Losses struct {
	Policy, Value, Entropy float64
}

// Trainer trains one policy.
type Trainer struct {
	Options
	// Save is given the best policy so far whenever there is a better one; it is not
	// modified afterwards.
	Save func(*policy.DL2Model) error
	// Tell is told of every point of the learning curve.
	Tell func(Point) error

	draw     Draw
	teacher  policy.Spec
	taught   float64 // the teacher's JCT on the validation episodes
	model    *policy.DL2Model
	best     Point // that of bestNets
	bestNets *policy.DL2Model
	episodes int // drawn so far

	batch         batch
	scratch, crit nn.Scratch
	grad, gradV   []float32
	dz, dv        []float32
	adam, adamV   nn.Adam
	kept          []sample // to be replayed
	oldest        int
	scale         float64 // of returns
}

// NewTrainer returns a trainer of a policy for the episodes that draw makes. from is
// the policy to begin with, nil = one that knows nothing.
func NewTrainer(o Options, draw Draw, from *policy.DL2Model) (*Trainer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := &Trainer{Options: o, draw: draw, model: from,
		Save: func(*policy.DL2Model) error { return nil }, Tell: func(Point) error { return nil }}
	if o.Supervised.Updates > 0 {
		specs, err := policy.Parse(o.Supervised.Teacher)
		if err != nil {
			return nil, fmt.Errorf("learn: teacher: %w", err)
		}
		if len(specs) != 1 {
			return nil, fmt.Errorf("learn: %d teachers, want one", len(specs))
		}
		t.teacher = specs[0]
	}
	if from == nil {
		var err error
		t.model, err = policy.NewDL2Model(o.Form, o.Hidden, o.Seed)
		return t, err
	}
	if err := from.Same(o.Form); err != nil {
		return nil, err
	}
	if from.Value == nil {
		return nil, errors.New("learn: the policy to go on from has no value network: it was written to be used, not to be trained further")
	}
	return t, nil
}

// Run trains, and returns the best policy on the validation episodes: by completion
// times, or where nothing was learnt by reward by how often the teacher agrees. The error wraps ErrDiverged where a loss was not finite.
func (t *Trainer) Run(ctx context.Context) (*policy.DL2Model, error) {
	if t.teacher.Name != "" {
		var err error
		if t.taught, err = t.validate(ctx, func(e *Episode, _ int) (err error) {
			e.Config.Policy, err = policy.New(t.teacher, e.Deps)
			e.Config.PolicyName = t.teacher.String()
			return err
		}); err != nil {
			return nil, err
		}
	}
	if t.Supervised.Updates > 0 {
		if err := t.imitate(ctx); err != nil {
			return nil, err
		}
		if err := t.restart(); err != nil {
			return nil, err
		}
	}
	if t.Reinforced.Iterations > 0 {
		if err := t.reinforce(ctx); err != nil {
			return nil, err
		}
	}
	return t.bestNets, nil
}

// restart goes on from the best policy so far.
func (t *Trainer) restart() (err error) {
	t.model, err = t.bestNets.Clone()
	t.adam, t.adamV = nn.Adam{}, nn.Adam{}
	return err
}

// Teacher returns the mean completion time of the teacher on the validation
// episodes, in seconds; 0 where there is none, and before Run.
func (t *Trainer) Teacher() float64 { return t.taught }

// tell tries the policy if it is time to, and passes the point on.
func (t *Trainer) tell(ctx context.Context, phase string, update, of int, l Losses, reward float64) error {
	for _, v := range []float64{l.Policy, l.Value, l.Entropy, reward} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("learn: %s update %d: loss %g: %w", phase, update, v, ErrDiverged)
		}
	}
	p := Point{Phase: phase, Update: update, Of: of, Losses: l, Reward: reward, Teacher: t.taught}
	every := t.ValidateUpdates
	if phase == reinforced {
		every = t.ValidateIterations
	}
	if update%every == 0 || update == of {
		var err error
		if p.JCTSec, p.Agrees, err = t.try(ctx, phase); err != nil {
			return err
		}
		if p.Best = t.better(p); p.Best {
			t.best = p
			if t.bestNets, err = t.model.Clone(); err != nil {
				return err
			}
			if err := t.Save(t.bestNets); err != nil {
				return err
			}
		}
	}
	return t.Tell(p)
}

// better reports whether the policy of p is to be kept rather than the one before: as
// long as it is to be a copy that which the teacher agrees with more, then that under
// which jobs take less time.
func (t *Trainer) better(p Point) bool {
	switch {
	case t.best.JCTSec == 0:
		return true
	case p.Phase == supervised:
		return p.Agrees >= t.best.Agrees
	}
	return p.JCTSec < t.best.JCTSec
}

// Phases.
const (
	supervised = "supervised"
	reinforced = "reinforced"
)

// greedy chooses as the policy will when it is used.
func (t *Trainer) greedy() policy.DL2Chooser { return policy.Likeliest(t.model.Policy) }

// try returns the mean completion time of the policy as it is on the validation episodes
// and, in the supervised phase, with what share of its actions there the teacher agrees.
func (t *Trainer) try(ctx context.Context, phase string) (jctSec, agrees float64, err error) {
	if phase == reinforced {
		jctSec, err = t.validate(ctx, func(e *Episode, _ int) (err error) {
			e.Config.PolicyName = "dl2"
			e.Config.Policy, err = policy.NewDL2(e.Deps, t.model.DL2Form, t.greedy())
			return err
		})
		return jctSec, 0, err
	}
	seen := make([]*observer, t.Validation)
	jctSec, err = t.validate(ctx, func(e *Episode, i int) (err error) {
		seen[i], err = t.lesson(e, -1-i, t.greedy())
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return jctSec, agreement(seen), nil
}

// validate returns the mean over the validation episodes, the i-th of which use gives
// its policy, of the mean completion time, in seconds.
func (t *Trainer) validate(ctx context.Context, use func(e *Episode, i int) error) (float64, error) {
	sum := make([]float64, t.Validation)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range t.Validation {
		g.Go(func() error {
			e, err := t.draw(ctx, -1-i)
			if err == nil {
				err = use(&e, i)
			}
			if err != nil {
				return err
			}
			r, err := sim.Run(ctx, e.Config)
			if err != nil {
				return err
			}
			sec, unfinished := meanJCT(r)
			if unfinished > 0 {
				return fmt.Errorf("learn: %s left %d jobs of validation episode %d unfinished", e.Config.PolicyName, unfinished, i+1)
			}
			sum[i] = sec
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	mean := 0.0
	for i, v := range sum {
		mean += (v - mean) / float64(i+1)
	}
	return mean, nil
}

// firstEpisode returns the number of the first of n new episodes to learn from.
func (t *Trainer) firstEpisode(n int) int {
	first := t.episodes
	t.episodes += n
	return first
}

// runAll runs n episodes from a number on, and returns what was observed of each, in
// their order. begin sets the policy of one.
func (t *Trainer) runAll(ctx context.Context, first, n int, begin func(e *Episode, number int) (*observer, error)) ([]*observer, error) {
	out := make([]*observer, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error {
			e, err := t.draw(ctx, first+i)
			if err != nil {
				return err
			}
			if out[i], err = begin(&e, first+i); err != nil {
				return err
			}
			r, err := sim.Run(ctx, e.Config)
			if err != nil {
				return err
			}
			out[i].finish(r)
			return nil
		})
	}
	return out, g.Wait()
}

// policyStep is an update of the policy network by the batch. loss is of sample i: it
// is given the probabilities of the actions, and adds to dz its gradient by what they
// are the softmax of.
func (t *Trainer) policyStep(rate float64, loss func(i int, p, dz []float32) float64) (float64, error) {
	b, net := &t.batch, t.model.Policy
	actions := t.model.Actions()
	t.grad = sized(t.grad, len(net.Params()))
	t.dz = sized(t.dz, b.n*actions)
	clear(t.dz)
	z := net.Forward(&t.scratch, b.states, b.n)
	sum := 0.0
	for i := range b.n {
		p, dz := z[i*actions:][:actions], t.dz[i*actions:][:actions]
		nn.Softmax(p, p, b.allowed[i*actions:][:actions])
		sum += loss(i, p, dz)
	}
	net.Backward(&t.scratch, t.dz, t.grad)
	t.adam.Rate, t.adam.Clip = rate, longest
	return sum, t.adam.Step(net.Params(), t.grad)
}

// valueStep is an update of the value network by the batch: the mean of half the
// squared difference from the targets.
func (t *Trainer) valueStep(rate float64) (float64, error) {
	b, net := &t.batch, t.model.Value
	t.gradV, t.dv = sized(t.gradV, len(net.Params())), sized(t.dv, b.n)
	v := net.Forward(&t.crit, b.states, b.n)
	sum := 0.0
	for i, s := range b.samples {
		d := float64(v[i]) - s.target/t.scale
		t.dv[i] = float32(d) / float32(b.n)
		sum += d * d / 2 / float64(b.n)
	}
	net.Backward(&t.crit, t.dv, t.gradV)
	t.adamV.Rate, t.adamV.Clip = rate, longest
	return sum, t.adamV.Step(net.Params(), t.gradV)
}

// longest is the length that gradients are cut to.
const longest = 5

func sized(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
