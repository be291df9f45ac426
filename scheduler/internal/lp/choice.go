package lp

import (
	"cmp"
	"context"
	"fmt"
	"math"
)

// Choice picks at most one option for each group and maximises the value under limited resources:
//
//	maximise    Σ_g Σ_o v_go x_go
//	subject to  Σ_o x_go <= 1              by group
//	            Σ_g Σ_o u_gok x_go <= N_k  by resource
//	            x in {0, 1}
//
// This is the multiple-choice multi-dimensional knapsack problem (Kellerer, Pferschy and Pisinger, Knapsack Problems,
// Springer 2004, chapters 9 and 11). With prices p on resources the groups separate, and
//
//	L(p) = p'N + Σ_g max(0, max_o v_go - p'u_go)
//
// bounds the value from above for any p >= 0. The least such bound equals the linear relaxation (Geoffrion, Lagrangean
// relaxation for integer programming, Mathematical Programming Study 2, 1974). That relaxation splits about as many
// groups as there are resources. [Choice.Solve] finds the prices by column generation and rounds the relaxation to a
// feasible answer. It then drops options that no better answer can contain, and searches the rest.
type Choice struct {
	Groups   [][]Option
	Capacity []float64 // N, by resource, >= 0
}

// Option is one alternative of a group.
type Option struct {
	Value float64 // options with a negative value are never picked
	Uses  []Use   // each resource at most once
}

// Use is the amount of one resource that an option takes.
type Use struct {
	Resource int
	Amount   float64 // >= 0
}

// ChoiceOptions are the stopping criteria. The zero value proves the optimum or stops after 200,000 nodes.
type ChoiceOptions struct {
	Gap      float64   // stop when (bound - value) / bound is at most this
	MaxNodes int       // limit of search nodes; zero is 200,000, negative disables the search
	Prices   []float64 // initial prices by resource, from a similar problem; nil starts without
}

// Chosen is the best answer found, with a bound on every answer.
type Chosen struct {
	Pick  []int   // option by group, -1 for none
	Value float64 // sum over the picks
	Bound float64 // upper bound on the value of any answer
	// Prices prove the bound of the relaxation, by resource: about the value of one more unit.
	Prices []float64
	Points int // price vectors evaluated
	Nodes  int // nodes searched
}

// Gap returns the largest possible distance of Value from the optimum, as a share of Bound.
func (c *Chosen) Gap() float64 {
	if c.Bound <= c.Value {
		return 0
	}
	return (c.Bound - c.Value) / math.Abs(c.Bound)
}

// Validate reports the first malformed capacity, group or option.
func (c *Choice) Validate() error {
	for k, n := range c.Capacity {
		if !finite(n) || n < 0 {
			return fmt.Errorf("lp: %w: resource %d has the capacity %g", ErrInvalid, k, n)
		}
	}
	for g, options := range c.Groups {
		for o, opt := range options {
			if !finite(opt.Value) {
				return fmt.Errorf("lp: %w: option %d of group %d has the value %g", ErrInvalid, o, g, opt.Value)
			}
			for _, u := range opt.Uses {
				if u.Resource < 0 || u.Resource >= len(c.Capacity) || !finite(u.Amount) || u.Amount < 0 {
					return fmt.Errorf("lp: %w: option %d of group %d uses %g of resource %d of %d", ErrInvalid, o, g, u.Amount, u.Resource, len(c.Capacity))
				}
			}
		}
	}
	return nil
}

// validatePrices reports the first malformed initial price.
func (c *Choice) validatePrices(p []float64) error {
	if len(p) != len(c.Capacity) {
		return fmt.Errorf("lp: %w: %d prices for %d resources", ErrInvalid, len(p), len(c.Capacity))
	}
	for k, v := range p {
		if !finite(v) || v < 0 {
			return fmt.Errorf("lp: %w: the price %g of resource %d", ErrInvalid, v, k)
		}
	}
	return nil
}

// Solve returns the best answer found, which is always feasible, with a proven bound. When ctx ends it returns the
// best so far without an error. It fails with [ErrInvalid].
func (c *Choice) Solve(ctx context.Context, o ChoiceOptions) (*Chosen, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if o.Prices != nil {
		if err := c.validatePrices(o.Prices); err != nil {
			return nil, err
		}
	}
	s := newChoiceSolver(c)
	s.relax(ctx, o)
	if !s.withinGap(o.Gap) && o.MaxNodes >= 0 {
		s.search(ctx, cmp.Or(o.MaxNodes, 200_000), o.Gap)
	}
	return s.solution(), nil
}
