package lookahead

import (
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// footprint is the resources that a candidate needs on nodes. Candidates with the same footprint fit at the same times.
type footprint struct {
	group, devices int
	counts         []int // devices on each node, most first
	host           spec.Host
	needs          []need // by distinct count, most first
}

// need says that at least nodes nodes must have count free devices or more.
type need struct{ count, nodes int }

func newFootprint(w *Candidate) footprint {
	f := footprint{group: w.Group, devices: w.Devices, counts: w.Counts, host: w.Host}
	for i, count := range w.Counts {
		if i+1 == len(w.Counts) || w.Counts[i+1] < count {
			f.needs = append(f.needs, need{count, i + 1})
		}
	}
	return f
}

func (f *footprint) is(w *Candidate) bool {
	return f.group == w.Group && f.devices == w.Devices && f.host == w.Host && slices.Equal(f.counts, w.Counts)
}

// footprints numbers the footprints of candidates, and remembers the number of each.
type footprints struct {
	all   []footprint
	alike map[[2]int][]int // by group and number of devices
	first []int            // by task, index of its first candidate in known
	known []int32          // by task and candidate, 1 + the index in all, 0 = not looked up yet
}

func newFootprints(p *Problem) *footprints {
	f := &footprints{alike: map[[2]int][]int{}}
	n := 0
	for i := range p.Tasks {
		f.first = append(f.first, n)
		n += len(p.Tasks[i].Candidates)
	}
	f.known = make([]int32, n)
	return f
}

// of returns the index in all of the footprint of w, the given candidate of a task.
func (f *footprints) of(task, candidate int, w *Candidate) int {
	known := &f.known[f.first[task]+candidate]
	if *known == 0 {
		*known = int32(f.find(w)) + 1
	}
	return int(*known) - 1
}

func (f *footprints) find(w *Candidate) int {
	key := [2]int{w.Group, w.Devices}
	for _, i := range f.alike[key] {
		if f.all[i].is(w) {
			return i
		}
	}
	f.all = append(f.all, newFootprint(w))
	f.alike[key] = append(f.alike[key], len(f.all)-1)
	return len(f.all) - 1
}
