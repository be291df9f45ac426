package place

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

var consolidatedInfo = Info{
	Name:  "consolidated",
	Doc:   "like packed, but a job waits until it fits on as few nodes as on the idle cluster",
	Picky: true,
	New:   func() scheduler.Placer { return consolidated{byNode{fullest}} },
}

// consolidated is packed for jobs that wait for the fewest nodes.
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

// Choose keeps, for each group and number of devices, the candidates on the fewest nodes.
func (consolidated) Choose(all []scheduler.Candidate) []scheduler.Candidate {
	return consolidate(all, func(scheduler.Candidate) bool { return true })
}

// alike are candidates that differ only in their layout.
type alike struct{ group, devices int }

func of(c scheduler.Candidate) alike { return alike{c.Group, c.Shape.Total()} }

// consolidate leaves out the candidates for which rule is true, except those on the fewest
// nodes for their group and number of devices.
func consolidate(all []scheduler.Candidate, rule func(scheduler.Candidate) bool) []scheduler.Candidate {
	fewest := map[alike]int{} // nodes
	for _, w := range all {
		if n, ok := fewest[of(w)]; !ok || w.Shape.Nodes() < n {
			fewest[of(w)] = w.Shape.Nodes()
		}
	}
	var out []scheduler.Candidate
	for _, w := range all {
		if w.Shape.Nodes() == fewest[of(w)] || !rule(w) {
			out = append(out, w)
		}
	}
	return out
}
