package lp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/heap"
)

// Binary adds a variable that is 0 or 1 in SolveInteger, and in [0, 1] in Solve.
func (p *Problem) Binary(name string, cost float64) Var {
	v := p.Var(name, 0, 1, cost)
	p.vars[v].binary = true
	return v
}

// IntegerOptions configure the solution of 0/1 programmes. The zero value proves the optimum.
type IntegerOptions struct {
	Options         // of the linear programmes
	Gap     float64 // stop when the gap, relative to max(1, |value|), is at most this; zero is 1e-9
	// MaxNodes limits the linear programmes solved; zero is 100,000. At the limit the best answer and its bound are
	// returned.
	MaxNodes int
}

// IntegerSolution is the best answer found, with a bound on every answer.
type IntegerSolution struct {
	Objective float64
	X         []float64 // by variable; binary ones are 0 or 1 exactly
	Bound     float64   // no answer has a better objective
	Nodes     int       // linear programmes solved
}

// Gap returns the largest possible distance of Objective from the optimum, relative to max(1, |Objective|).
func (s *IntegerSolution) Gap() float64 {
	return math.Abs(s.Bound-s.Objective) / math.Max(1, math.Abs(s.Objective))
}

// Value returns the value of v.
func (s *IntegerSolution) Value(v Var) float64 { return s.X[v] }

// ErrNoAnswer reports that the budget or the context ended before the first answer.
var ErrNoAnswer = errors.New("no answer found")

// SolveInteger solves the problem with 0/1 binary variables, by branch and bound over linear programmes (Land and
// Doig, An automatic method of solving discrete programming problems, Econometrica 28(3), 1960). It takes the node
// with the best bound first and follows it down to a leaf. Reduced costs above the gap fix variables. When ctx ends it
// returns the best so far without an error.
//
// It fails as Solve does, and with [ErrNoAnswer].
func (p *Problem) SolveInteger(ctx context.Context, o IntegerOptions) (*IntegerSolution, error) {
	if math.IsNaN(o.Gap) || o.Gap < 0 {
		return nil, fmt.Errorf("lp: gap %g; give zero or more", o.Gap)
	}
	f, err := p.prepare(o.Options)
	if err != nil {
		return nil, err
	}
	b := newBranching(f, p.binaries(), o)
	if out, err := b.root(ctx); err != nil || out.status != optimal {
		if err != nil {
			return nil, err
		}
		_, err = p.answer(f, out, o.Options)
		return nil, err
	}
	if err := b.run(ctx); err != nil {
		return nil, err
	}
	return b.answer(p)
}

// binaries lists the variables that must be 0 or 1.
func (p *Problem) binaries() []int {
	var list []int
	for j, v := range p.vars {
		if v.binary {
			list = append(list, j)
		}
	}
	return list
}

// branching is the state of a branch and bound. Objectives are those of the minimisation.
type branching struct {
	f        *form
	binaries []int
	o        IntegerOptions
	l, u     []float64 // bounds of the problem itself

	open  heap.Heap[*node]
	made  int // nodes created; breaks ties
	nodes int
	bestX []float64
	best  float64
	left  float64 // least bound of nodes abandoned for numerical reasons
}

// node is a subproblem with some binaries fixed.
type node struct {
	bound  float64 // lower bound on every answer in it
	serial int
	depth  int
	fixed  *fixing
}

// fixing is a fixed binary, linked to those fixed before.
type fixing struct {
	col    int
	value  float64
	before *fixing
}

// bestFirst orders nodes by bound. Ties go to the deeper node, then to the earlier one.
func bestFirst(a, b *node) bool {
	return cmp.Or(cmp.Compare(a.bound, b.bound), cmp.Compare(b.depth, a.depth), cmp.Compare(a.serial, b.serial)) < 0
}

func newBranching(f *form, binaries []int, o IntegerOptions) *branching {
	own := *f
	own.l, own.u = slices.Clone(f.l), slices.Clone(f.u)
	b := &branching{open: heap.Heap[*node]{Less: bestFirst}, f: &own, binaries: binaries, o: o, best: math.Inf(1), left: math.Inf(1)}
	b.o.Gap, b.o.MaxNodes = cmp.Or(o.Gap, 1e-9), cmp.Or(o.MaxNodes, 100_000)
	for _, j := range binaries { // SetBounds may have changed them
		own.l[j], own.u[j] = math.Ceil(own.l[j]-integral), math.Floor(own.u[j]+integral)
	}
	b.l, b.u = slices.Clone(own.l), slices.Clone(own.u)
	return b
}

// integral is the tolerance of whole numbers.
const integral = 1e-6

// root solves the relaxation, which bounds every answer.
func (b *branching) root(ctx context.Context) (outcome, error) {
	for _, j := range b.binaries {
		if b.l[j] > b.u[j] {
			return outcome{}, &InfeasibleError{Whole: true}
		}
	}
	out, err := b.f.decide(ctx, b.o.Options, nil)
	b.nodes++
	if err == nil && out.status == optimal {
		b.push(&node{bound: b.f.proven(out)})
	}
	return out, err
}

// proven returns the lower bound that the duals of out prove.
func (f *form) proven(out outcome) float64 {
	bound, _ := f.dualValue(out.y, f.reduced(out.y), 1)
	return bound
}

func (b *branching) push(n *node) {
	n.serial = b.made
	b.made++
	b.open.Push(n)
}

// run searches until no node is open, the gap is closed or the budget is spent.
func (b *branching) run(ctx context.Context) error {
	for len(b.open.Items) > 0 && !b.closed(b.open.Items[0].bound) && b.nodes < b.o.MaxNodes && ctx.Err() == nil {
		n := b.open.Pop()
		for n != nil {
			next, err := b.follow(ctx, n)
			if ctx.Err() != nil {
				b.push(n)
				return nil
			}
			if err != nil {
				return err
			}
			n = next
		}
	}
	return nil
}

// closed reports whether a node with that bound cannot improve the answer by more than the gap.
func (b *branching) closed(bound float64) bool {
	return bound >= b.best-b.o.Gap*math.Max(1, math.Abs(b.best))
}

// follow solves a node, opens one child and returns the other; nil at a leaf.
func (b *branching) follow(ctx context.Context, n *node) (*node, error) {
	if b.closed(n.bound) || b.nodes >= b.o.MaxNodes {
		b.push(n)
		return nil, nil
	}
	b.fix(n)
	out, err := b.f.solve(ctx, b.o.Options, nil)
	b.nodes++
	switch {
	case err != nil:
		return nil, err
	case out.status == infeasible:
		return nil, nil
	case out.status != optimal: // its bound remains part of the result
		b.left = math.Min(b.left, n.bound)
		return nil, nil
	}
	proven := b.f.proven(out)
	bound := math.Max(n.bound, proven)
	j := b.mostFractional(out.x)
	if j < 0 {
		return nil, b.accept(ctx, out, bound)
	}
	if n.depth%8 == 0 {
		if err := b.round(ctx, out.x); err != nil {
			return nil, err
		}
	}
	if b.closed(bound) {
		return nil, nil
	}
	fixed := b.fixByCost(n, out, proven)
	near := math.Round(out.x[j])
	b.push(&node{bound: bound, depth: n.depth + 1, fixed: &fixing{j, 1 - near, fixed}})
	b.made++
	return &node{bound: bound, serial: b.made, depth: n.depth + 1, fixed: &fixing{j, near, fixed}}, nil
}

// fix sets the bounds to those of n.
func (b *branching) fix(n *node) {
	for _, j := range b.binaries {
		b.f.l[j], b.f.u[j] = b.l[j], b.u[j]
	}
	for x := n.fixed; x != nil; x = x.before {
		b.f.l[x.col], b.f.u[x.col] = x.value, x.value
	}
}

// fixByCost fixes binaries with a reduced cost above the gap between bound and best answer.
func (b *branching) fixByCost(n *node, out outcome, bound float64) *fixing {
	fixed := n.fixed
	if math.IsInf(b.best, 1) {
		return fixed
	}
	d := b.f.reduced(out.y)
	for _, j := range b.binaries {
		if b.f.l[j] == b.f.u[j] || bound+math.Abs(d[j]) <= b.best+1e-9*math.Abs(b.best) {
			continue
		}
		value := b.f.l[j]
		if d[j] < 0 {
			value = b.f.u[j]
		}
		fixed = &fixing{j, value, fixed}
	}
	return fixed
}

// mostFractional returns the binary farthest from a whole number, -1 if all are whole.
func (b *branching) mostFractional(x []float64) int {
	at, most := -1, integral
	for _, j := range b.binaries {
		if d := math.Abs(x[j] - math.Round(x[j])); d > most {
			at, most = j, d
		}
	}
	return at
}

// accept rounds the binaries of a whole relaxation and solves for the other variables. If the result is worse than the
// relaxation, its bound stays open.
func (b *branching) accept(ctx context.Context, out outcome, bound float64) error {
	err := b.complete(ctx, out.x, math.Round)
	if !b.closed(bound) {
		b.left = math.Min(b.left, bound)
	}
	return err
}

// round looks for an answer near a relaxation. It rounds binaries to the nearest value; if that is infeasible, it
// rounds down.
func (b *branching) round(ctx context.Context, x []float64) error {
	before := b.best
	if err := b.complete(ctx, x, math.Round); err != nil || b.best < before {
		return err
	}
	return b.complete(ctx, x, func(x float64) float64 { return math.Floor(x + integral) })
}

// complete fixes every binary by whole, solves for the other variables, and keeps the answer if it is the best.
func (b *branching) complete(ctx context.Context, x []float64, whole func(float64) float64) error {
	for _, j := range b.binaries {
		v := math.Max(b.l[j], math.Min(b.u[j], whole(x[j])))
		b.f.l[j], b.f.u[j] = v, v
	}
	out, err := b.f.solve(ctx, b.o.Options, nil)
	b.nodes++
	if err != nil || out.status != optimal {
		return err
	}
	if value := dot(b.f.c, out.x); value < b.best {
		b.best, b.bestX = value, out.x
	}
	return nil
}

// answer returns the best answer, in the sense of p.
func (b *branching) answer(p *Problem) (*IntegerSolution, error) {
	bound := math.Min(b.best, b.left)
	if len(b.open.Items) > 0 {
		bound = math.Min(bound, b.open.Items[0].bound)
	}
	switch {
	case b.bestX != nil:
		return &IntegerSolution{Objective: p.sign()*b.best + p.offset, X: b.bestX, Bound: p.sign()*bound + p.offset, Nodes: b.nodes}, nil
	case len(b.open.Items) == 0 && math.IsInf(b.left, 1):
		return nil, &InfeasibleError{Whole: true}
	}
	return nil, fmt.Errorf("lp: %w in %d nodes; raise MaxNodes or the time limit", ErrNoAnswer, b.nodes)
}
