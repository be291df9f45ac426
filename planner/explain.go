package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// InfeasibleError explains why no plan answers a request. It wraps ErrInfeasible.
type InfeasibleError struct {
	Request string // model, devices, batch
	Why     string // what is missing, in a sentence
	// Nearest is the plan that needs the least memory, or the fastest plan where
	// the target was missed; nil when no plan is legal.
	Nearest *Choice
	// Remedy is the smallest change found that would help, nil = none found.
	Remedy *Remedy
}

// Remedy is a change to a request: more devices, or another plan where the request
// fixes one.
type Remedy struct {
	Change  string // such as "16 devices" or "recompute=full"
	Devices int    // 0 = as requested
	Plan    *spec.Plan
}

func (e *InfeasibleError) Error() string {
	msg := fmt.Sprintf("planner: %s: %v: %s", e.Request, ErrInfeasible, e.Why)
	if e.Remedy != nil {
		msg += "; would fit with " + e.Remedy.Change
	}
	return msg
}

// Unwrap returns ErrInfeasible.
func (e *InfeasibleError) Unwrap() error { return ErrInfeasible }

// infeasible returns the InfeasibleError of a normal request without an answer, or
// the error that ended the search for the explanation.
func (pl *Planner) infeasible(ctx context.Context, r Request) error {
	s := pl.newSearch(ctx, &r, func(*candidate) {})
	if err := s.sweep(); err != nil {
		return err
	}
	out := &InfeasibleError{Request: r.subject()}
	switch {
	case s.short > 0:
		c, err := s.choice(s.closest)
		if err != nil {
			return err
		}
		out.Nearest = &c
		out.Why = fmt.Sprintf("of %d plans that fit the fastest, %s, makes %.4g samples/s of the %.4g asked for",
			s.short, c.Config.Plan, r.quantile(&c.Prediction), r.TargetThroughput)
	case s.missed:
		c, err := s.choice(s.nearest)
		if err != nil {
			return err
		}
		out.Nearest = &c
		out.Why = fmt.Sprintf("the nearest, %s, %s", c.Config.Plan, c.Why)
		out.Remedy = pl.remedy(ctx, r, c.Config, s)
	default:
		out.Why = pl.noCandidate(ctx, r.at(r.Devices, r.MinBatch))
	}
	if err := ctx.Err(); err != nil {
		return err // the search may be incomplete
	}
	return out
}

// subject names model, devices and batch for messages.
func (r *Request) subject() string {
	devices, batch := fmt.Sprint(r.Devices), fmt.Sprint(r.MinBatch)
	if from, to := r.counts(); from < to {
		devices = fmt.Sprintf("%d to %d", from, to)
	}
	if r.MinBatch < r.MaxBatch {
		batch = fmt.Sprintf("%d to %d", r.MinBatch, r.MaxBatch)
	}
	return fmt.Sprintf("%s, %s x %s, global batch %s", r.Model.Name, devices, r.Accelerator.Name, batch)
}

// noCandidate returns why the space is empty for r, and the nearest number of
// devices with a candidate.
func (pl *Planner) noCandidate(ctx context.Context, r Request) string {
	why := "the space has no candidate"
	if d, ok := pl.o.Space.(Diagnostic); ok {
		why = d.WhyNone(r)
	}
	if r.Plan != nil || r.Shape.Devices != "" {
		return why
	}
	for d := 1; d <= 64 && ctx.Err() == nil; d++ {
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

// remedy returns the smallest change after which a plan fits, nil if none is found.
// A fixed plan is changed where it costs least time: micro-batch, then
// recomputation, ZeRO stage and offload. Otherwise more devices are tried.
func (pl *Planner) remedy(ctx context.Context, r Request, c spec.Config, miss *search) *Remedy {
	if r.Plan != nil {
		return pl.remedyPlan(ctx, r, c, miss)
	}
	if n := pl.moreDevices(ctx, r); n > 0 {
		return &Remedy{Change: spec.Count(n, "device"), Devices: n}
	}
	return nil
}

// moreDevices returns the smallest larger number of devices found on which a plan
// fits, 0 if none. It doubles the number up to 64 times and then searches the last
// doubling in whole nodes. The number is invalid once ctx has ended.
func (pl *Planner) moreDevices(ctx context.Context, r Request) int {
	r = r.at(r.Devices, r.MinBatch)
	r.Shape.Devices = ""
	low := r.Devices
	for high := 2 * low; high <= min(64*r.Devices, maxDevices) && ctx.Err() == nil; low, high = high, 2*high {
		if !pl.anyFits(ctx, r.at(high, r.MinBatch)) {
			continue
		}
		step := 1
		if low >= r.PerNode {
			step = ((high-low)/r.PerNode/remedySteps + 1) * r.PerNode
		}
		for n := low - low%step + step; n < high && ctx.Err() == nil; n += step {
			if pl.anyFits(ctx, r.at(n, r.MinBatch)) {
				return n
			}
		}
		return high
	}
	return 0
}

// remedySteps bounds the numbers of devices tried between two doublings.
const remedySteps = 16

// anyFits reports whether some candidate of r fits.
func (pl *Planner) anyFits(ctx context.Context, r Request) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	fits := false
	f := finders.Get().(*finder)
	defer f.put()
	f.reset(ctx, pl, &r, func(*candidate) { fits = true; stop() })
	f.fitting = true
	_ = f.run(r) // stopped, or not covered
	return fits
}

// remedyPlan returns the first change of c's plan that the space has and that fits.
func (pl *Planner) remedyPlan(ctx context.Context, r Request, c spec.Config, miss *search) *Remedy {
	st := &miss.sites[miss.nearest.site]
	for _, ch := range changes(c.Plan, r.Accelerator.IsCPU()) {
		r.Plan = &ch.plan
		k := candidate{plan: ch.plan}
		if st.estimate(&k, miss.limit); !st.known || !miss.fit(&k, st) {
			continue
		}
		for range pl.o.Space.Configs(ctx, r) {
			return &Remedy{Change: ch.name, Plan: &ch.plan}
		}
	}
	return nil
}

type change struct {
	name string
	plan spec.Plan
}

// changes lists single changes of p that save memory, those that cost least time
// first, and then all of them together. CPUs have no offload. Combinations that no
// training stack supports are left out.
func changes(p spec.Plan, cpu bool) []change {
	var out []change
	for mb := p.MicroBatch / 2; mb >= 1; mb /= 2 {
		if p.MicroBatch%mb == 0 {
			q := p
			q.MicroBatch, q.AccumSteps = mb, p.AccumSteps*(p.MicroBatch/mb)
			out = append(out, change{fmt.Sprintf("mb=%d,ga=%d", q.MicroBatch, q.AccumSteps), q})
		}
	}
	if p.Schedule != spec.ScheduleDefault {
		q := p
		q.Schedule = spec.ScheduleDefault
		out = append(out, change{"schedule=1f1b", q})
	}
	if p.Shard > 0 {
		q := p
		q.Shard = 0
		out = append(out, change{"shard=0", q})
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
	if p.Offload == spec.OffloadNone && !cpu {
		q, name := p, "offload=optimizer"
		if q.Offload = spec.OffloadOptimizer; q.ZeRO == 0 && q.DP*q.CP > 1 {
			q.ZeRO, name = 1, "zero=1,offload=optimizer"
		}
		out = append(out, change{name, q})
	}
	all := p
	all.Schedule, all.Shard = spec.ScheduleDefault, 0
	all.MicroBatch, all.AccumSteps, all.Recompute = 1, p.AccumSteps*p.MicroBatch, spec.RecomputeFull
	if !slices.ContainsFunc(out, func(c change) bool { return c.plan == all }) && all != p {
		out = append(out, change{fmt.Sprintf("mb=1,ga=%d,recompute=full", all.AccumSteps), all})
	}
	return slices.DeleteFunc(out, func(c change) bool { return first(redundant(&c.plan), offloadable(&c.plan)) != noViolation })
}

// WhyNone names up to three rules that the simplest splits of r break, or the rule
// its plan breaks.
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
	if len(g.precisions()) == 0 {
		return fmt.Sprintf("%s has none of the formats %v", r.Accelerator.Name, g.e.Precisions)
	}
	var reasons []string
	for _, tp := range divisors(g.node) {
		if r.Devices%tp != 0 {
			continue
		}
		for _, pp := range divisors(r.Devices / tp) {
			why := g.whyIllegal(spec.Plan{TP: tp, PP: pp, DP: r.Devices / tp / pp}.Normal())
			if len(reasons) < 3 && !slices.Contains(reasons, why) {
				reasons = append(reasons, why)
			}
		}
	}
	return strings.Join(reasons, "; ")
}

// whyIllegal returns why no plan with these degrees is in the space.
func (g *generator) whyIllegal(p spec.Plan) string {
	if g.r.GlobalBatch%p.DP != 0 {
		return fmt.Sprintf("dp=%d, left by tp=%d and pp=%d, does not divide a global batch of %d", p.DP, p.TP, p.PP, g.r.GlobalBatch)
	}
	if b := first(g.legalDegrees(&p), g.legalModes(&p)); b != noViolation {
		return b.describe(g, g.seq, &p)
	}
	if err := p.Check(g.r.Model); err != nil {
		return err.Error()
	}
	return "no mode of the space is legal"
}
