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
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/policy/dl2"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// ErrDiverged reports a loss that is not finite. Training stopped; the policy saved last is valid.
var ErrDiverged = nn.ErrDiverged

// Point is a point of the learning curve.
type Point struct {
	Phase  string // "supervised" or "reinforced"
	Update int    // from 1: update of the supervised phase, iteration of the reinforced one
	Of     int
	Losses
	Reward    float64 // undiscounted reward per job over the iteration's episodes
	JCTSec    float64 // mean completion time on the validation episodes; 0 without validation
	Teacher   float64 // the same for the teacher; 0 without one
	Agreement float64 // supervised phase: share of its validation actions that lead to the teacher's decision
	Best      bool    // the policy is the best so far and is kept
}

// Losses are means over the updates of a point.
type Losses struct {
	Policy, Value, Entropy float64
}

// Trainer trains one policy.
type Trainer struct {
	Options
	// Save receives each new best policy, which does not change afterwards.
	Save func(*dl2.Model) error
	// OnPoint receives every point of the learning curve.
	OnPoint func(Point) error

	draw       Draw
	teacher    policy.Spec
	teacherJCT float64 // teacher's JCT on the validation episodes
	model      *dl2.Model
	best       Point // point of bestNets
	bestNets   *dl2.Model
	episodes   int // drawn so far

	batch         batch
	scratch, crit nn.Scratch
	grad, gradV   []float32
	dz, dv        []float32
	adam, adamV   nn.Adam
	replay        []sample // replay buffer
	oldest        int
	scale         float64 // scale of returns
}

// NewTrainer returns a trainer for the episodes of draw. from is the initial policy; nil starts from random weights.
func NewTrainer(o Options, draw Draw, from *dl2.Model) (*Trainer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := &Trainer{Options: o, draw: draw, model: from,
		Save: func(*dl2.Model) error { return nil }, OnPoint: func(Point) error { return nil }}
	if o.Supervised.Updates > 0 {
		specs, err := builtin.Policies.Parse(o.Supervised.Teacher)
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
		t.model, err = dl2.NewModel(o.Form, o.Hidden, o.Seed)
		return t, err
	}
	if err := from.Same(o.Form); err != nil {
		return nil, err
	}
	if from.Value == nil {
		return nil, errors.New("learn: the initial policy has no value network; use a file written for further training")
	}
	return t, nil
}

// Run trains and returns the best policy on the validation episodes: by completion time, or after only the supervised
// phase by agreement with the teacher. The error wraps ErrDiverged if a loss was not finite.
func (t *Trainer) Run(ctx context.Context) (*dl2.Model, error) {
	if t.teacher.Name != "" {
		var err error
		if t.teacherJCT, err = t.validate(ctx, func(e *Episode, _ int) (err error) {
			e.Config.Policy, err = builtin.Policies.New(t.teacher, e.Deps)
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

// restart continues from the best policy so far.
func (t *Trainer) restart() (err error) {
	t.model, err = t.bestNets.Clone()
	t.adam, t.adamV = nn.Adam{}, nn.Adam{}
	return err
}

// report validates the policy if due, and passes the point to OnPoint.
func (t *Trainer) report(ctx context.Context, phase string, update, of int, l Losses, reward float64) error {
	for _, v := range []float64{l.Policy, l.Value, l.Entropy, reward} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("learn: %s update %d: loss %g: %w", phase, update, v, ErrDiverged)
		}
	}
	p := Point{Phase: phase, Update: update, Of: of, Losses: l, Reward: reward, Teacher: t.teacherJCT}
	every := t.ValidateUpdates
	if phase == reinforced {
		every = t.ValidateIterations
	}
	if update%every == 0 || update == of {
		var err error
		if p.JCTSec, p.Agreement, err = t.evaluate(ctx, phase); err != nil {
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
	return t.OnPoint(p)
}

// better reports whether the policy of p replaces the best so far. In the supervised phase the one with the higher
// agreement wins, then the one with the lower completion time.
func (t *Trainer) better(p Point) bool {
	switch {
	case t.best.JCTSec == 0:
		return true
	case p.Phase == supervised:
		return p.Agreement >= t.best.Agreement
	}
	return p.JCTSec < t.best.JCTSec
}

// Phases.
const (
	supervised = "supervised"
	reinforced = "reinforced"
)

// greedy chooses the most likely action, as the finished policy does.
func (t *Trainer) greedy() dl2.Chooser { return dl2.Likeliest(t.model.Policy) }

// evaluate returns the policy's mean completion time on the validation episodes, and in the supervised phase its
// agreement with the teacher.
func (t *Trainer) evaluate(ctx context.Context, phase string) (jctSec, agrees float64, err error) {
	if phase == reinforced {
		jctSec, err = t.validate(ctx, func(e *Episode, _ int) (err error) {
			e.Config.PolicyName = "dl2"
			e.Config.Policy, err = dl2.New(e.Deps, t.model.Form, t.greedy())
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

// validate returns the mean over the validation episodes of the mean completion time, in seconds. use sets the policy
// of episode i.
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

// firstEpisode reserves n new training episodes and returns the number of the first.
func (t *Trainer) firstEpisode(n int) int {
	first := t.episodes
	t.episodes += n
	return first
}

// runAll runs n episodes from number first and returns their observers in order. begin sets the policy of an episode.
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

// policyStep updates the policy network by the batch. loss returns the loss of sample i for action probabilities p,
// and adds to dz its gradient by the inputs of the softmax.
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
	t.adam.Rate, t.adam.Clip = rate, maxGradNorm
	return sum, t.adam.Step(net.Params(), t.grad)
}

// valueStep updates the value network by the batch; the loss is half the mean squared error.
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
	t.adamV.Rate, t.adamV.Clip = rate, maxGradNorm
	return sum, t.adamV.Step(net.Params(), t.gradV)
}

// maxGradNorm clips the length of gradients.
const maxGradNorm = 5

func sized(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
