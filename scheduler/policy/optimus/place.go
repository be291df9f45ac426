package optimus

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// Place places the jobs. A job that keeps its number of devices keeps its devices; the
// others follow in ascending number of devices (section 4.2).
func (p *Sizing) Place(growers []*Grower, free *scheduler.Inventory, c spec.Cluster) {
	var others []*Grower
	for _, g := range growers {
		if g.Keeps || g.Grant != nil && g.Grant.Devices() == g.Devices() && free.Group[g.Grant.Slots[0].Node] == g.Group {
			g.Granted = g.Grant
			free.Take(g.Granted.Slots)
		} else {
			others = append(others, g)
		}
	}
	slices.SortStableFunc(others, func(a, b *Grower) int { return cmp.Compare(a.Devices(), b.Devices()) })
	for _, g := range others {
		if g.Granted = p.find(g, free, c); g.Granted != nil {
			free.Take(g.Granted.Slots)
		}
	}
}

// find returns a grant of free devices for g. If its size does not fit because devices are
// fragmented it gets a smaller one.
func (p *Sizing) find(g *Grower, free *scheduler.Inventory, c spec.Cluster) *scheduler.Grant {
	if len(g.Sizes) == 0 {
		return p.Finder.Place(free, c, g.Job, g.Candidates)
	}
	for i := g.At; i >= 0; i-- {
		sz := &g.Sizes[i]
		if g.Grant != nil && g.Grant.Devices() == sz.Devices && free.Clone().Take(g.Grant.Slots) {
			return g.Grant
		}
		if grant := p.ofSize(g, sz, free); grant != nil {
			return grant
		}
	}
	return nil
}

func (p *Sizing) ofSize(g *Grower, sz *Size, free *scheduler.Inventory) *scheduler.Grant {
	if !p.anyDevices {
		for i := range sz.options {
			if grant := p.Finder.PlaceOption(free, g.Job, &sz.options[i]); grant != nil {
				return grant
			}
		}
		return nil
	}
	shape, ok := p.Finder.Lay(free, g.Group, g.Job, sz.Devices)
	if !ok {
		return nil
	}
	o := candidate.Config{Group: g.Group, Plan: sz.options[0].Plan, Shape: shape, Devices: sz.Devices}
	return p.Finder.PlaceOption(free, g.Job, &o)
}
