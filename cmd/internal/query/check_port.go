package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/launch/recipe"
)

// mostDoublings bounds how many more devices a port may take than the file where nothing fits on as many.
const mostDoublings = 6

// port predicts the recipe on another accelerator, with the same batch.
func (c *checker) port(ctx context.Context) (*Port, error) {
	q := c.q.Request
	q.Accelerator, q.Chip, q.Node, q.PerNode, q.Precision = c.q.To, Chip{}, "", 0, ""
	found, err := c.r.Resolve(ctx, q)
	if err != nil {
		var bad *FieldError
		if errors.As(err, &bad) && bad.Field == "accelerator" {
			bad.Field = "to"
		}
		return nil, err
	}
	plan := c.report.Config.Plan
	found.GlobalBatch, found.Devices = plan.GlobalBatch(), plan.Devices()
	written := cmp.Or(c.written.Precision, plan.Precision)
	found.Precision = written
	out := &Port{Accelerator: found.Accelerator.Name, Notes: []string{}}
	if err := CheckPrecision(written, found.Accelerator); err != nil {
		found.Precision = found.Accelerator.DefaultPrecision()
		out.note("%v: %s takes the place of %s", err, found.Precision, written)
	}
	out.Notes = append(out.Notes, c.file.Lacks(found.Accelerator)...)
	out.Notes = append(out.Notes, spans(&plan, found.Accelerator, found.PerNode, max(c.found.PerNode, c.found.Accelerator.ScaleUpDomain()))...)
	pl := planner.New(found.Predictor, planner.Options{})
	best, err := pl.Best(ctx, found.Request)
	for n := 1; errors.Is(err, planner.ErrInfeasible) && n <= mostDoublings; n++ {
		more := found.Request
		if more.Devices = plan.Devices() << n; more.Devices > MaxDevices {
			break
		}
		ch, e := pl.Best(ctx, more)
		if e == nil {
			out.note("no plan fits on %d devices; %d hold one", plan.Devices(), more.Devices)
			best, err, found.Devices = ch, nil, more.Devices
		} else if !errors.Is(e, planner.ErrInfeasible) {
			return nil, e
		}
	}
	if err != nil {
		return nil, err
	}
	out.Best = NewPlanRow(best)
	c.widen(&out.Best)
	if out.Same, err = c.samePlan(ctx, &found, pl, best.Config.Plan.Precision); err != nil {
		return nil, err
	}
	return out, c.portDiff(ctx, found.Request, pl, out)
}

func (p *Port) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// spans says which groups of the file's plan are larger than a node of a. Groups of experts count if one scale-up link of
// at most was devices joined them before.
func spans(p *spec.Plan, a spec.Accelerator, perNode, was int) (notes []string) {
	n := max(perNode, 1)
	for _, group := range []struct {
		name string
		size int
	}{{"tp", p.TP}, {"ep", p.EP}} {
		if group.size <= n || group.name == "ep" && group.size > was {
			continue
		}
		note := fmt.Sprintf("a node of %s has %d devices: %s=%d of the file spans %d nodes", a.Name, n, group.name, group.size, (group.size+n-1)/n)
		if domain := a.ScaleUpDomain(); group.size <= domain {
			note += fmt.Sprintf(" of the %d devices that its links join", domain)
		}
		notes = append(notes, note)
	}
	return notes
}

// samePlan predicts the plan of the file on another accelerator, nil where it is illegal there.
func (c *checker) samePlan(ctx context.Context, found *Resolved, pl *planner.Planner, precision spec.Precision) (*PlanRow, error) {
	at, same := found.Request, c.report.Config.Plan
	same.Precision = precision
	at.Plan, at.Devices, at.Shape = &same, same.Devices(), spec.Packed(same.Devices(), found.PerNode)
	ch, err := c.fixed(ctx, pl, at)
	switch {
	case errors.Is(err, planner.ErrInfeasible):
		return nil, nil
	case err != nil:
		return nil, err
	}
	row := NewPlanRow(ch)
	c.widen(&row)
	return &row, nil
}

// portDiff sets the diff of the file to the best plan that it can hold, with that plan, or why there is none.
func (c *checker) portDiff(ctx context.Context, at planner.Request, pl *planner.Planner, out *Port) error {
	at.Top = 200
	ranking, err := pl.Rank(ctx, at)
	if err != nil {
		return err
	}
	from := c.fileConfig()
	i := slices.IndexFunc(ranking.Choices, func(ch planner.Choice) bool { return !ch.Fits })
	if i < 0 {
		i = len(ranking.Choices)
	}
	for _, ch := range ranking.Choices[:i] {
		if ch.Config.Plan == from.Plan && len(c.file.Lacks(at.Accelerator)) == 0 {
			out.NoDiff = "the file says the best plan that it can hold already"
			return nil
		}
		text, no := c.file.Diff(from, ch.Config, recipe.Options{Set: c.q.Set})
		if no == "" {
			row := NewPlanRow(ch)
			c.widen(&row)
			out.Diff, out.NoDiff, out.Held = text, "", &row
			return nil
		}
		out.NoDiff = cmp.Or(out.NoDiff, no)
	}
	out.NoDiff = cmp.Or(out.NoDiff, "nothing fits")
	return nil
}

// fileConfig is the configuration with the plan as the file says it.
func (c *checker) fileConfig() spec.Config {
	out := c.report.Config
	out.Plan.Precision = cmp.Or(c.written.Precision, out.Plan.Precision)
	return out
}
