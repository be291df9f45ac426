package planner

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// infeasible returns the error for a normal request nothing fits, wrapping
// ErrInfeasible: the nearest miss and the smallest change that would help, or
// why there is no candidate at all.
func (pl *Planner) infeasible(ctx context.Context, r Request) error {
	s := pl.newSearch(ctx, r, func(*candidate) {})
	if err := s.run(); err != nil {
		return err
	}
	if !s.missed {
		why := "the space has no candidate"
		if d, ok := pl.o.Space.(Diagnostic); ok {
			why = d.WhyNone(r)
		}
		return fmt.Errorf("planner: %s, %d x %s, global batch %d: %w: %s", r.Model.Name, r.Devices, r.Accelerator.Name, r.GlobalBatch, ErrInfeasible, why)
	}
	c := s.sites[s.nearest.site].config
	c.Plan = s.nearest.plan
	msg := fmt.Sprintf("the nearest, %s, %s", c.Plan, s.why(c, s.nearest.bytes))
	if fix := pl.remedy(ctx, r, c, s.limit); fix != "" {
		msg += "; would fit with " + fix
	}
	return fmt.Errorf("planner: %s, %d x %s, global batch %d: %w: %s", r.Model.Name, r.Devices, r.Accelerator.Name, r.GlobalBatch, ErrInfeasible, msg)
}

// remedy returns the smallest change that makes something fit, "" if none is
// found. A fixed plan is first changed where it is cheap: micro-batch, then
// recomputation, ZeRO stage and offload. Then more devices are tried, doubling
// up to 64 times as many.
func (pl *Planner) remedy(ctx context.Context, r Request, c spec.Config, limit float64) string {
	if r.Plan != nil {
		return pl.remedyPlan(c, limit)
	}
	for n := 2 * r.Devices; n <= 64*r.Devices && n <= maxDevices; n *= 2 {
		more := r
		more.Devices, more.Shape.Devices = n, ""
		fits := false
		s := pl.newSearch(ctx, more, func(*candidate) { fits = true })
		for c := range pl.o.Space.Configs(ctx, more) {
			if err := s.judge(&c); err != nil || fits {
				break
			}
		}
		if fits {
			return fmt.Sprintf("%d devices", n)
		}
	}
	return ""
}

func (pl *Planner) remedyPlan(c spec.Config, limit float64) string {
	fits := func(p spec.Plan) bool {
		at := c
		at.Plan = p
		b, err := pl.memory(at)
		return err == nil && b.Total() <= limit && p.Check(c.Model) == nil
	}
	for _, ch := range changes(c.Plan) {
		if fits(ch.plan) {
			return ch.name
		}
	}
	return ""
}

type change struct {
	name string
	plan spec.Plan
}

// changes lists single changes of p that save memory, the cheapest in time
// first, then all of them together.
func changes(p spec.Plan) []change {
	var out []change
	for mb := p.MicroBatch / 2; mb >= 1; mb /= 2 {
		if p.MicroBatch%mb == 0 {
			q := p
			q.MicroBatch, q.AccumSteps = mb, p.AccumSteps*(p.MicroBatch/mb)
			out = append(out, change{fmt.Sprintf("mb=%d,ga=%d", q.MicroBatch, q.AccumSteps), q})
		}
	}
	if p.Recompute != spec.RecomputeFull {
		q := p
		q.Recompute = spec.RecomputeFull
		out = append(out, change{"recompute=full", q})
	}
	for z := p.ZeRO + 1; z <= 3; z++ {
		q := p
		q.ZeRO = z
		out = append(out, change{fmt.Sprintf("zero=%d", z), q})
	}
	if p.Offload == spec.OffloadNone {
		q := p
		q.Offload = spec.OffloadOptimizer
		out = append(out, change{"offload=optimizer", q})
	}
	all := p
	all.MicroBatch, all.AccumSteps, all.Recompute = 1, p.AccumSteps*p.MicroBatch, spec.RecomputeFull
	out = append(out, change{fmt.Sprintf("mb=1,ga=%d,recompute=full", all.AccumSteps), all})
	return out
}

// WhyNone names the rule that rules most of r's splits out, or the plan's own
// breach.
func (e Enumerate) WhyNone(r Request) string {
	g := e.generator(r)
	if p := r.Plan; p != nil {
		if p.Devices() != r.Devices {
			return fmt.Sprintf("plan %s is for %d devices, not %d", p, p.Devices(), r.Devices)
		}
		if err := p.Check(r.Model); err != nil {
			return err.Error()
		}
		return g.legal(p)
	}
	count, order := map[string]int{}, []string(nil)
	note := func(why string) {
		if count[why]++; count[why] == 1 {
			order = append(order, why)
		}
	}
	for _, tp := range divisors(g.node) {
		for _, pp := range divisors(r.Devices / tp) {
			note(g.refuse(spec.Plan{TP: tp, PP: pp, DP: r.Devices / tp / pp}.Normal()))
		}
	}
	best := order[0]
	for _, why := range order {
		if count[why] > count[best] {
			best = why
		}
	}
	return best
}

// refuse returns why no plan with these degrees is in the space.
func (g *generator) refuse(p spec.Plan) string {
	if g.r.GlobalBatch%p.DP != 0 {
		return fmt.Sprintf("no data parallel degree left by %s divides a global batch of %d: dp=%d does not", "heads and layers", g.r.GlobalBatch, p.DP)
	}
	if why := g.legal(&p); why != "" {
		return why
	}
	if err := p.Check(g.r.Model); err != nil {
		return err.Error()
	}
	return "no mode of the space is legal"
}

var _ = memory.GiB
