package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	var why string
	if s.missed {
		c := s.sites[s.nearest.site].config
		c.Plan = s.nearest.plan
		why = fmt.Sprintf("the nearest, %s, %s", c.Plan, s.why(c, &s.nearest))
		if fix := pl.remedy(ctx, r, c, s); fix != "" {
			why += "; would fit with " + fix
		}
	} else {
		why = pl.noCandidate(ctx, r)
	}
	return fmt.Errorf("planner: %s, %d x %s, global batch %d: %w: %s",
		r.Model.Name, r.Devices, r.Accelerator.Name, r.GlobalBatch, ErrInfeasible, why)
}

// noCandidate says why the space is empty for r, and the nearest number of
// devices where it is not.
func (pl *Planner) noCandidate(ctx context.Context, r Request) string {
	why := "the space has no candidate"
	if d, ok := pl.o.Space.(Diagnostic); ok {
		why = d.WhyNone(r)
	}
	if r.Plan != nil || r.Shape.Devices != "" {
		return why
	}
	for d := 1; d <= 64; d++ {
		for _, n := range [2]int{r.Devices - d, r.Devices + d} {
			at := r
			if at.Devices = n; n < 1 || n > maxDevices {
				continue
			}
			for range pl.o.Space.Configs(ctx, at) {
				return fmt.Sprintf("%s; %d devices have a candidate", why, n)
			}
		}
	}
	return why
}

// remedy returns the smallest change that makes something fit, "" if none is
// found. A fixed plan is changed where it is cheap: micro-batch, then
// recomputation, ZeRO stage and offload. Else more devices are tried, doubling
// up to 64 times as many.
func (pl *Planner) remedy(ctx context.Context, r Request, c spec.Config, miss *search) string {
	if r.Plan != nil {
		return pl.remedyPlan(ctx, r, c, miss)
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

// remedyPlan returns the first change of c's plan that is in the space and fits.
func (pl *Planner) remedyPlan(ctx context.Context, r Request, c spec.Config, miss *search) string {
	st := &miss.sites[miss.nearest.site]
	for _, ch := range changes(c.Plan) {
		r.Plan = &ch.plan
		k := candidate{plan: ch.plan}
		if st.estimate(&k); !st.known || !miss.fit(&k, st) {
			continue
		}
		for range pl.o.Space.Configs(ctx, r) {
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

// WhyNone names the rules that the simplest splits of r break, three at most,
// or the one its plan breaks.
func (e Enumerate) WhyNone(r Request) string {
	g := e.generator(r)
	if p := r.Plan; p != nil {
		if p.Devices() != r.Devices {
			return fmt.Sprintf("plan %s is for %d devices, not %d", p, p.Devices(), r.Devices)
		}
		if err := p.Check(r.Model); err != nil {
			return err.Error()
		}
		return CannotSplit(&g.r.Model, g.c.Seq(), p)
	}
	var reasons []string
	for _, tp := range divisors(g.node) {
		if r.Devices%tp != 0 {
			continue
		}
		for _, pp := range divisors(r.Devices / tp) {
			why := g.refuse(spec.Plan{TP: tp, PP: pp, DP: r.Devices / tp / pp}.Normal())
			if len(reasons) < 3 && !slices.Contains(reasons, why) {
				reasons = append(reasons, why)
			}
		}
	}
	return strings.Join(reasons, "; ")
}

// refuse returns why no plan with these degrees is in the space.
func (g *generator) refuse(p spec.Plan) string {
	if g.r.GlobalBatch%p.DP != 0 {
		return fmt.Sprintf("dp=%d, left by tp=%d and pp=%d, does not divide a global batch of %d", p.DP, p.TP, p.PP, g.r.GlobalBatch)
	}
	if why := g.legal(&p); why != "" {
		return why
	}
	if err := p.Check(g.r.Model); err != nil {
		return err.Error()
	}
	return "no mode of the space is legal"
}
