package memory

import (
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Verdict is the answer to the question whether a plan fits.
type Verdict string

// Verdicts. Unsure means that neither answer has the probability Sure.
const (
	Fits    Verdict = "fits"
	Unsure  Verdict = "unsure"
	Exceeds Verdict = "does not fit"
)

// Judge returns the verdict on a plan with unknown settings: it fits if every alternative fits with a
// probability of at least Sure, and does not if every one exceeds the memory with that probability. least and most are
// the smallest and largest probability of fitting among the alternatives.
func Judge(least, most float64) Verdict {
	switch {
	case least >= Sure:
		return Fits
	case most <= 1-Sure:
		return Exceeds
	}
	return Unsure
}

// Verdict judges whether a device of memBytes holds the peak.
func (b Breakdown) Verdict(memBytes float64) Verdict {
	p := b.FitProbability(memBytes)
	return Judge(p, p)
}

// Alternatives returns the plans that c may have run. unrecorded names the settings that are not known, separated by
// commas as in Env["unrecorded"] of published rows:
//
//	recompute    none, selective or full
//	zero_stage   0, 1 or 3, with more than one data parallel rank
//	micro_batch  that of the plan, a half, a quarter, ... with more accumulation steps
//
// Some stacks have settings that no plan states. One that recomputes whole blocks under "selective" may do so for every
// other block or for all. Megatron Core recomputes the attention core or, with --recompute-modules, up to the whole MLP
// of layers with experts. DeepSpeed may split the inputs that full recomputation keeps over tensor parallel ranks
// (partition_activations, runtime/activation_checkpointing/checkpointing.py).
func Alternatives(c *spec.Config, unrecorded string) []spec.Plan {
	out := []spec.Plan{c.Plan}
	vary := func(change func(spec.Plan) []spec.Plan) { // nil = the plan alone
		var all []spec.Plan
		for i, p := range out {
			to := change(p)
			if to == nil && len(out) == 1 {
				return
			}
			if to == nil {
				to = out[i : i+1]
			}
			for _, q := range to {
				if !slices.Contains(all, q) {
					all = append(all, q)
				}
			}
		}
		out = all
	}
	for name := range strings.SplitSeq(unrecorded, ",") {
		switch name {
		case "recompute":
			vary(func(p spec.Plan) []spec.Plan {
				return recomputing(p, spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull)
			})
		case "zero_stage":
			vary(sharding)
		case "micro_batch":
			vary(accumulating)
		}
	}
	vary(func(p spec.Plan) []spec.Plan {
		if p.Recompute != spec.RecomputeSelective || !anyStack(c, p, func(s *stack.Stack) bool {
			return s.Parts.Recompute == stack.Blocks || c.Model.Experts > 0 && s.OnCore() && s.Parts.Recompute == stack.Core
		}) {
			return nil
		}
		return recomputing(p, spec.RecomputeSelective, spec.RecomputeFull)
	})
	vary(func(p spec.Plan) []spec.Plan {
		q := p
		q.SequenceParallel = p.SequenceParallel || p.TP > 1 && p.Recompute == spec.RecomputeFull
		if q == p || !anyStack(c, p, func(s *stack.Stack) bool { return s.Parts.ZeRO == stack.DeepSpeed }) {
			return nil
		}
		return []spec.Plan{p, q}
	})
	return out
}

func recomputing(p spec.Plan, modes ...spec.Recompute) []spec.Plan {
	out := make([]spec.Plan, len(modes))
	for i, r := range modes {
		out[i] = p
		out[i].Recompute = r
	}
	return out
}

func sharding(p spec.Plan) []spec.Plan {
	out := []spec.Plan{p}
	if max(p.DP, 1)*max(p.CP, 1) == 1 {
		return out
	}
	for _, zero := range []int{0, 1, 3} {
		q := p
		q.ZeRO = zero
		out = append(out, q)
	}
	return out
}

func accumulating(p spec.Plan) []spec.Plan {
	out := []spec.Plan{p}
	for p.MicroBatch > 1 && p.MicroBatch%2 == 0 {
		p.MicroBatch, p.AccumSteps = p.MicroBatch/2, 2*max(p.AccumSteps, 1)
		out = append(out, p)
	}
	return out
}

// anyStack reports whether a stack that c may run on under a plan has a property.
func anyStack(c *spec.Config, p spec.Plan, has func(*stack.Stack) bool) bool {
	choices, normal := stack.Of(c.Framework, c.Accelerator.Arch), p.Normal()
	for i, w := range choices.Weight[stack.UseOf(&normal)] {
		if w > 0 && has(choices.Stacks[i]) {
			return true
		}
	}
	return false
}

// Open returns the verdict on c's plan, which has the breakdown need, with unrecorded settings, see Alternatives, and the
// probability of fitting if all alternatives are equally likely.
func (e *Estimator) Open(c *spec.Config, need *Breakdown, unrecorded string) (Verdict, float64) {
	least, most, sum := 1.0, 0.0, 0.0
	all := Alternatives(c, unrecorded)
	for i := range all {
		b := *need
		if all[i] != c.Plan {
			b = e.Plan(all[i])
		}
		fit := b.FitProbability(c.Accelerator.MemBytes)
		least, most, sum = min(least, fit), max(most, fit), sum+fit
	}
	return Judge(least, most), sum / float64(len(all))
}
