package learn

import (
	"errors"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/scheduler/policy/dl2"
)

// Options configure training. DefaultOptions has the values of DL2 where published.
type Options struct {
	Seed   uint64
	Form   dl2.Form
	Hidden int // units in each of the two hidden layers

	Supervised Supervised
	Reinforced Reinforced

	// ValidateUpdates and ValidateIterations are the updates and iterations between validations. A validation runs the
	// policy on Validation episodes that training does not use; the best policy is kept.
	ValidateUpdates, ValidateIterations int
	Validation                          int
}

// Supervised configures the phase that imitates another policy.
type Supervised struct {
	Teacher  string // policy, with options
	Updates  int    // 0 skips the phase
	Batch    int
	Rate     float64 // learning rate of Adam
	Rounds   int     // rounds of recorded episodes; from the second on the learner's decisions apply
	Episodes int     // per round
}

// Reinforced configures the phase that learns from rewards.
type Reinforced struct {
	Iterations int // 0 skips the phase
	Episodes   int // per iteration, in parallel
	Updates    int // per iteration
	Batch      int
	Rate       float64 // learning rate of Adam for the policy
	ValueRate  float64
	Warm       int     // initial iterations that update only the value network
	Discount   float64 // discount of the next slot's reward
	Lambda     float64 // discount of the next slot's advantage (Schulman et al., GAE, ICLR 2016)
	// Soften divides the initial outputs of the policy network: a confident copy of the teacher would not explore.
	Soften  float64
	Entropy float64 // weight of the policy's entropy
	Explore float64 // probability of a corrective action for an unbalanced job
	Replay  int     // size of the replay buffer in actions; 0 uses the actions of the iteration only
	Clip    float64 // limit on the change of an action's probability, relative to that at its choice
	Reward  Reward
	NoValue bool // baseline is the mean return instead of a value network
}

// Reward is the reward function.
type Reward string

// Rewards.
const (
	// Progress is the sum over jobs of the share of work done in a slot (DL2, section 4.1), for all actions of the
	// slot.
	Progress Reward = "progress"
	// PerAction rewards each action by the predicted growth of the job's share of work per slot. DL2 has it for
	// comparison.
	PerAction Reward = "per-action"
	// Waiting is minus the time of jobs in the system, in slots; its sum is that of completion times.
	Waiting Reward = "waiting"
)

// DefaultOptions returns the values of DL2 (section 6.1: batches of 256, learning rates 0.005 and 0.0001, discount
// 0.9, entropy 0.1, exploration 0.4, replay of 8192 actions), and tuned values for the others. Differs: imitation
// within 100 updates uses batches of 1024 and a rate of 0.01. The caller sets Form.
func DefaultOptions() Options {
	return Options{
		Seed: 1, Hidden: 256, ValidateUpdates: 25, ValidateIterations: 5, Validation: 8,
		Supervised: Supervised{Updates: 100, Batch: 1024, Rate: 0.01, Rounds: 10, Episodes: 2},
		Reinforced: Reinforced{Iterations: 100, Episodes: 8, Updates: 32, Batch: 256, Rate: 1e-4, ValueRate: 1e-3, Warm: 3,
			Discount: 0.9, Lambda: 0.95, Soften: 10, Entropy: 0.1, Explore: 0.4, Replay: 8192, Clip: 0.2, Reward: Progress},
	}
}

// Validate reports the options out of range.
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
		within("supervised updates", float64(s.Updates), 0, 1e6),
		within("iterations", float64(r.Iterations), 0, 1e6),
	)
	if s.Updates > 0 {
		err = errors.Join(err, within("batch", float64(s.Batch), 1, 65536), within("learning rate", s.Rate, 0, 1),
			within("rounds", float64(s.Rounds), 1, float64(s.Updates)), within("episodes", float64(s.Episodes), 1, 10000))
	}
	if r.Iterations > 0 {
		err = errors.Join(err, within("batch", float64(r.Batch), 1, 65536), within("learning rate", r.Rate, 0, 1),
			within("learning rate of values", r.ValueRate, 0, 1),
			within("episodes", float64(r.Episodes), 1, 10000), within("updates", float64(r.Updates), 1, 1e6),
			within("discount", r.Discount, 0, 1), within("lambda", r.Lambda, 0, 1), within("softening", r.Soften, 1, 1e6),
			within("entropy", r.Entropy, 0, 10),
			within("exploration", r.Explore, 0, 1), within("replay", float64(r.Replay), 0, 1<<20), within("clip", r.Clip, 1e-3, 10))
		if r.Reward != Progress && r.Reward != PerAction && r.Reward != Waiting {
			err = errors.Join(err, fmt.Errorf("learn: reward %q is not one of %s, %s, %s", r.Reward, Progress, PerAction, Waiting))
		}
	}
	if s.Updates == 0 && r.Iterations == 0 {
		err = errors.Join(err, errors.New("learn: both supervised updates and iterations are 0; set at least one"))
	}
	return err
}
