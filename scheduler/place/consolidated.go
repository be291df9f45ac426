package place

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
)

func init() {
	register(Info{
		Name:  "consolidated",
		Doc:   "like packed, but a job rather waits than runs on more nodes than it needs on the idle cluster",
		Picky: true,
		New:   func(compat.Quirks) scheduler.Placer { return consolidated{byNode{fullest}} },
	})
}

// consolidated is packed for jobs that insist on the fewest nodes.
type consolidated struct{ byNode }

// Lay returns whole nodes and one remainder, if there are such nodes.
func (p consolidated) Lay(free *scheduler.Inventory, group, devices int) (spec.Shape, bool) {
	if devices < 1 || group < 0 || free.FreeIn(group) < devices {
		return spec.Shape{}, false
	}
	shape := spec.Packed(devices, free.Size(group))
	if _, ok := p.Place(free, group, shape); !ok {
		return spec.Shape{}, false
	}
	return shape, true
}

// Choose keeps the ways that use the fewest nodes of those on as many devices of
// their group.
func (consolidated) Choose(ways []scheduler.Way) []scheduler.Way {
	return consolidate(ways, func(scheduler.Way) bool { return true })
}

// alike are ways that differ in their layout alone.
type alike struct{ group, devices int }

func of(w scheduler.Way) alike { return alike{w.Group, w.Shape.Total()} }

// consolidate returns the ways without those of many nodes that the rule is for.
func consolidate(ways []scheduler.Way, rule func(scheduler.Way) bool) []scheduler.Way {
	fewest := map[alike]int{} // nodes
	for _, w := range ways {
		if n, ok := fewest[of(w)]; !ok || w.Shape.Nodes() < n {
			fewest[of(w)] = w.Shape.Nodes()
		}
	}
	var out []scheduler.Way
	for _, w := range ways {
		if w.Shape.Nodes() == fewest[of(w)] || !rule(w) {
			out = append(out, w)
		}
	}
	return out
}
