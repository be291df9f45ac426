package lookahead

import (
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// footprint is what ways take of nodes. Candidates of one footprint have room at the same times.
type footprint struct {
	group, devices int
	counts         []int // on each of its nodes, most first
	host           spec.Host
	needs          []need // by count, each once, most first
}

// need is how many nodes must have at least so many devices free.
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

// footprints finds those of ways, each looked up once.
type footprints struct {
	all   []footprint
	alike map[[2]int][]int // of a group and so many devices
	first []int            // by task, where its ways begin in known
	known []int32          // by task and way, one more than the place in all, 0 = not looked up yet
}

func newFootprints(p *Problem) *footprints {
	f := &footprints{alike: map[[2]int][]int{}}
	ways := 0
	for i := range p.Tasks {
		f.first = append(f.first, ways)
		ways += len(p.Tasks[i].Candidates)
	}
	f.known = make([]int32, ways)
	return f
}

// of returns the place in all of the footprint of w, which is a way of a task.
func (f *footprints) of(task, way int, w *Candidate) int {
	known := &f.known[f.first[task]+way]
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
