package query

import (
	"cmp"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// AssumedStack is a training stack that a prediction assumes.
type AssumedStack struct {
	Framework   string      `json:"framework" example:"Megatron Core@0.13" doc:"The stack and its release, as a request states it."`
	Probability float64     `json:"probability" doc:"Of this stack under a plan of this kind, after the measured rows of the accelerator and stack that the request states."`
	StepRatio   float64     `json:"step_ratio" doc:"Step time if the request stated this stack, divided by the predicted one. Measured rows of another stack, or of none, do not count for a stated one."`
	Parts       stack.Parts `json:"parts"`
}

// assumedStacks returns the stacks that the prediction of c assumes, the most probable first, and whether it is from
// measured rows. sec is the predicted step time.
func assumedStacks(e Explainer, c spec.Config, sec float64) (out []AssumedStack, measured bool, err error) {
	stated, _ := stack.Parse(c.Framework) // what can be read, as in stack.Of
	choices := stack.Of(c.Framework, c.Accelerator.Arch)
	weights, measured, err := e.StackWeights(c)
	if err != nil {
		return nil, false, err
	}
	for i, of := range choices.Stacks[:choices.N] {
		if weights[i] == 0 {
			continue
		}
		a := AssumedStack{Framework: stated.Release(of), Probability: weights[i], StepRatio: 1, Parts: of.Parts}
		if choices.Stated() {
			a.Framework = stated.Canonical()
		} else {
			on := c
			on.Framework = a.Framework
			parts, err := e.Explain(on)
			if err != nil {
				return nil, false, err
			}
			a.StepRatio = parts.Total() / sec
		}
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b AssumedStack) int { return cmp.Compare(b.Probability, a.Probability) })
	return out, measured, nil
}

// Decisive returns the stack that would change the step time most if it were stated, the first of those that change it
// equally up to rounding; nil if the stack is known. Two stacks of equal probability always do.
func (e *Explanation) Decisive() *AssumedStack {
	if len(e.Stacks) < 2 {
		return nil
	}
	change := func(a *AssumedStack) float64 { return math.Abs(math.Log(a.StepRatio)) }
	most := e.Stacks[0]
	for i := range e.Stacks {
		if a := &e.Stacks[i]; change(a) > change(&most)+1e-9 {
			most = *a
		}
	}
	return &most
}
