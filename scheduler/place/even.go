package place

import (
	"context"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// Even returns a placer for clusters where a job has the same number of devices on each of its
// nodes, such as Slurm. It places even shapes like p, and no others.
func Even(p scheduler.Placer) scheduler.Placer {
	e := even{p}
	if c, ok := p.(scheduler.Chooser); ok {
		return evenChooser{e, c}
	}
	return e
}

type even struct{ scheduler.Placer }

// Place places even shapes.
func (e even) Place(free *scheduler.Inventory, group int, want spec.Shape) ([]scheduler.Slot, bool) {
	if want.Most() != want.Least() {
		return nil, false
	}
	return e.Placer.Place(free, group, want)
}

// Lay returns the even shape on the fewest nodes.
func (e even) Lay(free *scheduler.Inventory, group, devices int) (spec.Shape, bool) {
	if devices < 1 || group < 0 || free.FreeIn(group) < devices {
		return spec.Shape{}, false
	}
	first, end := free.Nodes(group)
	for nodes := 1; nodes <= min(devices, end-first); nodes++ {
		per := devices / nodes
		if devices%nodes != 0 || per > free.Size(group) {
			continue
		}
		room := 0
		for has := free.Least(group, per); has >= 0; has = free.Least(group, has+1) {
			room += free.With(group, has)
		}
		if room >= nodes {
			return spec.NewShape(slices.Repeat([]int{per}, nodes)...), true
		}
	}
	return spec.Shape{}, false
}

// evenChooser also restricts the layouts of a job, as chooser does.
type evenChooser struct {
	even
	chooser scheduler.Chooser
}

// Choose implements scheduler.Chooser.
func (e evenChooser) Choose(all []scheduler.Candidate) []scheduler.Candidate {
	return e.chooser.Choose(all)
}

// EvenOracle is an oracle for such clusters: it ranks even shapes only.
type EvenOracle struct{ scheduler.Oracle }

// Rank implements scheduler.Oracle.
func (e EvenOracle) Rank(ctx context.Context, r planner.Request) (planner.Ranking, error) {
	out, err := e.Oracle.Rank(ctx, r)
	choices := make([]planner.Choice, 0, len(out.Choices)) // the ranking may be shared
	for _, ch := range out.Choices {
		if isEven(&ch.Config) {
			choices = append(choices, ch)
		}
	}
	out.Choices = choices
	return out, err
}

// PerShape implements scheduler.ShapeRanker.
func (e EvenOracle) PerShape(ctx context.Context, r planner.Request, accept func(*spec.Config) bool) ([]planner.Choice, error) {
	return scheduler.PerShape(ctx, e.Oracle, r, func(c *spec.Config) bool { return isEven(c) && accept(c) })
}

func isEven(c *spec.Config) bool { return c.Shape.Most() == c.Shape.Least() }
