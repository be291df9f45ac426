package learn

import (
	"errors"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Options say how a policy is trained. DefaultOptions has what DL2 uses where that is
// known.
type Options struct {
	Seed   uint64
	Form   policy.DL2Form
	Hidden int // units of each of the two hidden layers

	Supervised Supervised
	Reinforced Reinforced

	// Validate is after how many updates, and iterations, the policy is tried on
	// Validation episodes that nothing is learnt from; the best is kept.
	ValidateUpdates, ValidateIterations int
	Validation                          int
}

// Supervised is the phase in which another policy is imitated.
type Supervised struct {
	Teacher  string // policy, with options
	Updates  int    // 0 = the phase is left out
	Batch    int
	Rate     float64 // of Adam
	Rounds   int     // in which episodes are watched; from the second on the pupil's own
	Episodes int     // in each
}

// Reinforced is the phase in which the policy is rewarded for what it does itself.
type Reinforced struct {
	Iterations int // 0 = the phase is left out
	Episodes   int // in each, at once
	Updates    int // in each
	Batch      int
	Rate       float64 // of Adam
	ValueRate  float64
	Warm       int     // iterations at first in which the value network alone learns
	Discount   float64 // of the reward of the next slot
	Lambda     float64 // of the advantage of the next slot (Schulman et al., GAE, ICLR 2016)
	// Soften is what the preferences that the phase begins with are divided by: a copy
	// that is sure of what its teacher does would try nothing else.
	Soften  float64
	Entropy float64 // what the entropy of the policy is worth
	Explore float64 // probability with which a lopsided job is helped
	Replay  int     // actions kept to learn from; 0 = those of the iteration alone
	Clip    float64 // an action's probability is not moved farther from that it was chosen with than by this factor less 1
	Reward  Reward
	NoValue bool // compares with the mean of the returns, not with a value network
}

// Reward is what the policy is rewarded for.
type Reward string

// Rewards.
const (
	// Progress is the sum over jobs of the share of their work that is done in a slot
	// (DL2, section 4.1), for all its actions.
	Progress Reward = "progress"
	// PerAction gives every action what it alone promises: by how much it makes the
	// job's share of work per slot rise, as believed. DL2 has it to compare with.
	PerAction Reward = "per-action"
	// Waiting is the time that jobs spend inside, in slots and with a minus: the sum of
	// completion times.
	Waiting Reward = "waiting"
)

// DefaultOptions returns what DL2 uses (section 6.1: batches of 256, learning rates
// 0.005 and 0.0001, discount 0.9, entropy 0.1, exploration 0.4, 8192 actions kept), and
// what turned out to do where it does not say. Differs: a copy of the teacher within 100
// updates takes batches of 1024 and a rate of 0.01. Form is left to the caller.
func DefaultOptions() Options {
	return Options{
		Seed: 1, Hidden: 256, ValidateUpdates: 25, ValidateIterations: 5, Validation: 8,
		Supervised: Supervised{Updates: 100, Batch: 1024, Rate: 0.01, Rounds: 10, Episodes: 2},
		Reinforced: Reinforced{Iterations: 100, Episodes: 8, Updates: 32, Batch: 256, Rate: 1e-4, ValueRate: 1e-3, Warm: 3,
			Discount: 0.9, Lambda: 0.95, Soften: 10, Entropy: 0.1, Explore: 0.4, Replay: 8192, Clip: 0.2, Reward: Progress},
	}
}

// Validate reports the first option that nothing can be trained with.
func (o *Options) Validate() error {
	if err := o.Form.Validate(); err != nil {
		return err
	}
	s, r := &o.Supervised, &o.Reinforced
	within := func(name string, v, lo, hi float64) error {
		if !(v >= lo && v <= hi) {
			return fmt.Errorf("learn: %s %g is not in [%g, %g]", name, v, lo, hi)
		}
		return nil
	}
	err := errors.Join(
		within("hidden units", float64(o.Hidden), 1, 4096),
		within("validation episodes", float64(o.Validation), 1, 1000),
		within("updates between validations", float64(o.ValidateUpdates), 1, math.MaxInt32),
		within("iterations between validations", float64(o.ValidateIterations), 1, math.MaxInt32),
		within("updates by a teacher", float64(s.Updates), 0, 1e6),
		within("iterations", float64(r.Iterations), 0, 1e6),
	)
	if s.Updates > 0 {
		err = errors.Join(err, within("batch", float64(s.Batch), 1, 65536), within("rate of learning", s.Rate, 0, 1),
			within("rounds", float64(s.Rounds), 1, float64(s.Updates)), within("episodes", float64(s.Episodes), 1, 10000))
	}
	if r.Iterations > 0 {
		err = errors.Join(err, within("batch", float64(r.Batch), 1, 65536), within("rate of learning", r.Rate, 0, 1),
			within("rate of learning values", r.ValueRate, 0, 1),
			within("episodes", float64(r.Episodes), 1, 10000), within("updates", float64(r.Updates), 1, 1e6),
			within("discount", r.Discount, 0, 1), within("lambda", r.Lambda, 0, 1), within("softening", r.Soften, 1, 1e6),
			within("entropy", r.Entropy, 0, 10),
			within("exploration", r.Explore, 0, 1), within("replay", float64(r.Replay), 0, 1<<20), within("clip", r.Clip, 1e-3, 10))
		if r.Reward != Progress && r.Reward != PerAction && r.Reward != Waiting {
			err = errors.Join(err, fmt.Errorf("learn: reward %q is not one of %s, %s, %s", r.Reward, Progress, PerAction, Waiting))
		}
	}
	if s.Updates == 0 && r.Iterations == 0 {
		err = errors.Join(err, errors.New("learn: neither updates by a teacher nor iterations: nothing would be learnt"))
	}
	return err
}
