package learn

import (
	"context"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/pacer-ml/pacer/scheduler/internal/nn"
	"github.com/pacer-ml/pacer/scheduler/policy/dl2"
)

// reinforce trains both networks on the rewards of the policy's own decisions.
func (t *Trainer) reinforce(ctx context.Context) error {
	o := &t.Reinforced
	t.model.Policy.Core().Soften(float32(o.Soften))
	for i := range o.Iterations {
		reward, err := t.experience(ctx)
		if err != nil {
			return err
		}
		var sum Losses
		for u := range o.Updates {
			l, err := t.improve(i, u)
			if err != nil {
				return err
			}
			n := float64(u + 1)
			sum.Policy += (l.Policy - sum.Policy) / n
			sum.Value += (l.Value - sum.Value) / n
			sum.Entropy += (l.Entropy - sum.Entropy) / n
		}
		if err := t.report(ctx, reinforced, i+1, o.Iterations, sum, reward); err != nil {
			return err
		}
	}
	return nil
}

// experience runs the episodes of an iteration under the current policy, and adds their actions to the replay buffer.
// It returns the reward per job.
func (t *Trainer) experience(ctx context.Context) (float64, error) {
	o := &t.Reinforced
	jobs := make([]int, o.Episodes)
	first := t.firstEpisode(o.Episodes)
	runs, err := t.runAll(ctx, first, o.Episodes, func(e *Episode, number int) (*observer, error) {
		a := &actor{net: t.model.Policy, form: &t.model.Form, stream: stream(t.Seed, "actions", number), explore: o.Explore, to: newObserver(o.Reward, t.model.SlotSec)}
		inner, err := dl2.New(e.Deps, t.model.Form, a)
		a.to.Policy = inner
		e.Config.Policy, e.Config.PolicyName = a.to, "dl2"
		jobs[number-first] = len(e.Config.Jobs)
		return a.to, err
	})
	if err != nil {
		return 0, err
	}
	total, all := 0.0, 0
	var fresh []sample
	for i, r := range runs {
		fresh = append(fresh, t.returns(r.slots)...)
		for _, s := range r.slots {
			total += s.reward
		}
		all += jobs[i]
	}
	t.remember(fresh)
	return total / float64(max(all, 1)), nil
}

// returns computes advantages and targets of the actions of an episode, from last to first (Schulman et al., GAE, ICLR
// 2016, equation 16). With V the value network:
//
//	delta_k = r + g V(s_k+1) - V(s_k)
//	advantage_k = delta_k + g lambda advantage_k+1,  target_k = advantage_k + V(s_k)
//
//	r  reward of the slot for its last action, 0 for the others; all actions of a slot
//	   share the reward, without discount between them (DL2, section 4.2)
//	g  1 within a slot of duration d, and discount^(d/slot) between slots
//
// Without a value network V is 0, and lambda is 1 within a slot.
func (t *Trainer) returns(slots []slot) (out []sample) {
	o := &t.Reinforced
	advantage, value := 0.0, 0.0 // of the next action
	for i := len(slots) - 1; i >= 0; i-- {
		s := &slots[i]
		values := t.valuesOf(s.actions)
		discount := math.Pow(o.Discount, s.took.Seconds()/t.model.SlotSec)
		reward, lambda := s.reward, o.Lambda
		for k := len(s.actions) - 1; k >= 0; k-- {
			a := &s.actions[k]
			advantage = reward + a.extra + discount*(value+lambda*advantage) - values[k]
			if o.Reward == PerAction {
				advantage = a.extra - values[k]
			}
			value = values[k]
			out = append(out, sample{action: *a, target: advantage + value, advantage: advantage})
			if reward, discount = 0, 1; o.NoValue {
				lambda = 1
			}
		}
	}
	slices.Reverse(out)
	return out
}

// valuesOf returns the value network's estimate for the state of each action.
func (t *Trainer) valuesOf(actions []action) []float64 {
	out := make([]float64, len(actions))
	if t.Reinforced.NoValue || t.scale == 0 {
		return out
	}
	inputs := t.model.Inputs()
	x := make([]float32, len(actions)*inputs)
	for i := range actions {
		copy(x[i*inputs:], actions[i].state)
	}
	for i, v := range t.model.Value.Forward(&t.crit, x, len(actions)) {
		out[i] = float64(v) * t.scale
	}
	return out
}

// remember adds new samples to the replay buffer: all if they fill at most half of it, else a random half.
func (t *Trainer) remember(fresh []sample) {
	o := &t.Reinforced
	if t.scale == 0 {
		t.scale = rootMeanSquare(fresh)
	}
	if o.Replay == 0 {
		t.replay = fresh
		return
	}
	r := stream(t.Seed, "replay", t.episodes)
	r.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
	for _, s := range fresh[:min(len(fresh), max(o.Replay/2, 1))] {
		if len(t.replay) < o.Replay {
			t.replay = append(t.replay, s)
			continue
		}
		t.replay[t.oldest] = s
		t.oldest = (t.oldest + 1) % o.Replay
	}
}

// rootMeanSquare returns the root mean square of the targets, 1 if all are 0.
func rootMeanSquare(samples []sample) float64 {
	sum := 0.0
	for i := range samples {
		sum += samples[i].target * samples[i].target
	}
	if sum == 0 {
		return 1
	}
	return math.Sqrt(sum / float64(len(samples)))
}

// improve applies one update to both networks, with a batch from the replay buffer.
func (t *Trainer) improve(iteration, update int) (l Losses, err error) {
	o := &t.Reinforced
	r := stream(t.Seed, "batches", iteration<<20+update)
	b := &t.batch
	b.begin(&t.model.Form, o.Batch)
	for range o.Batch {
		b.add(&t.replay[r.IntN(len(t.replay))], r)
	}
	mean, deviation := b.advantages()
	var g errgroup.Group
	if !o.NoValue {
		g.Go(func() (err error) {
			l.Value, err = t.valueStep(o.ValueRate)
			return err
		})
	}
	if iteration >= o.Warm {
		g.Go(func() (err error) {
			l.Policy, err = t.policyStep(o.Rate, func(i int, p, dz []float32) float64 {
				s := b.samples[i]
				advantage := (s.advantage - mean) / deviation
				loss := b.gradient(i, p, dz, advantage, o.Clip)
				h := nn.Entropy(p, float32(o.Entropy/float64(b.n)), dz)
				l.Entropy += h / float64(b.n)
				return loss
			})
			return err
		})
	}
	return l, g.Wait()
}

// advantages returns the mean and standard deviation of the batch's advantages.
func (b *batch) advantages() (mean, deviation float64) {
	for i, s := range b.samples {
		mean += (s.advantage - mean) / float64(i+1)
	}
	for _, s := range b.samples {
		deviation += (s.advantage - mean) * (s.advantage - mean) / float64(len(b.samples))
	}
	return mean, math.Sqrt(deviation) + 1e-8
}

// gradient adds the policy gradient of sample i to dz, and returns the loss
//
//	-A min(w, 1+clip) for A > 0, -A max(w, 1-clip) else,  w = p(a|s) / p_then(a|s)
//
// with the current probabilities p, and p_then those at the choice (clipped importance weights, Schulman et al., PPO,
// 2017, equation 7).
func (b *batch) gradient(i int, p, dz []float32, advantage, clip float64) float64 {
	n, s := float64(b.n), b.samples[i]
	w := float64(p[b.actions[i]]) / s.prob
	switch {
	case advantage > 0 && w > 1+clip:
		return -advantage * (1 + clip) / n
	case advantage < 0 && w < 1-clip:
		return -advantage * (1 - clip) / n
	}
	nn.CrossEntropy(p, b.actions[i], float32(w*advantage/n), dz)
	return -w * advantage / n
}
