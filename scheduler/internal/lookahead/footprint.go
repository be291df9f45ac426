package lookahead

import (
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// shape is the devices that a candidate needs on nodes.
type shape struct {
	group, devices int
	counts         []int  // devices on each node, most first
	needs          []need // by distinct count, most first
}

// need says that at least nodes nodes must have count free devices or more.
type need struct{ count, nodes int }

func newShape(w *Candidate) shape {
	f := shape{group: w.Group, devices: w.Devices, counts: w.Counts}
	for i, count := range w.Counts {
		if i+1 == len(w.Counts) || w.Counts[i+1] < count {
			f.needs = append(f.needs, need{count, i + 1})
		}
	}
	return f
}

// footprint is a shape with host resources per device. Candidates with the same footprint fit at the same times.
type footprint struct {
	shape int // index in footprints.shapes
	host  spec.Host
}

// footprints numbers the footprints of candidates.
type footprints struct {
	all    []footprint
	shapes []shape
	hosts  bool             // nodes limit host resources; else footprints have none
	alike  map[[2]int][]int // shapes, by group and number of devices
	number map[footprint]int
}

func newFootprints(p *Problem) *footprints {
	return &footprints{alike: map[[2]int][]int{}, number: map[footprint]int{}, hosts: slices.ContainsFunc(p.Nodes, Node.limited)}
}

func (f *footprints) find(w *Candidate) int {
	print := footprint{shape: f.shapeOf(w)}
	if f.hosts {
		print.host = w.Host
	}
	n, ok := f.number[print]
	if !ok {
		n = len(f.all)
		f.number[print] = n
		f.all = append(f.all, print)
	}
	return n
}

// shapeOf returns the index in shapes of the shape of w.
func (f *footprints) shapeOf(w *Candidate) int {
	key := [2]int{w.Group, w.Devices}
	for _, i := range f.alike[key] {
		if slices.Equal(f.shapes[i].counts, w.Counts) {
			return i
		}
	}
	f.shapes = append(f.shapes, newShape(w))
	f.alike[key] = append(f.alike[key], len(f.shapes)-1)
	return len(f.shapes) - 1
}
