package lookahead

import (
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/heap"
)

// proposal is a candidate schedule: what is decided of every task.
type proposal struct {
	order  []int  // the tasks that may be started, those that are kept among them
	way    []int  // by task
	keep   []bool // by task
	strict []bool // by task
}

func (s *proposal) set(o *proposal) {
	s.order = append(s.order[:0], o.order...)
	s.way = append(s.way[:0], o.way...)
	s.keep = append(s.keep[:0], o.keep...)
	s.strict = append(s.strict[:0], o.strict...)
}

// rollout runs schedules rollout in time.
type rollout struct {
	p      *Problem
	base   *nodes   // while all that hold devices keep them
	ends   []finish // when those end, ascending
	prints *footprints

	// Of the present run:
	now     *nodes
	queue   heap.Heap[finish] // ends of running tasks
	pending []int             // tasks to start, in order
	left    int               // how many of them have not been
	strict  int               // how many of those are strict
	lines   []line            // by footprint
	waiting [][]int           // by group, footprints with waiting tasks
	freed   []int             // by group, number of ends there
	tried   []int             // by group, freed when all waiting tasks were tried last, -1 = never
	room    []int             // scratch of start: footprints for which there is room
	least   float64           // what those left cost if they start at once
	weight  float64           // by how much more a second later, at the least
	last    float64           // when the last of the others ends
	slots   [][]Slot          // by task, of those started
	started []float64         // by task

	steps int // of work, in all runs
}

// moveSteps is the work of a start or an end, for which nodes and the queue change, in steps.
const moveSteps = 16

// line is the tasks that wait for room for a footprint.
type line struct {
	places []int // in pending, ascending
	served int   // how many of those have started
	full   int   // freed of the group when there was no room last, -1 = there has been so far
}

func (l *line) head() int { return l.places[l.served] }

func newRollout(p *Problem) *rollout {
	f := &rollout{p: p, queue: heap.Heap[finish]{Less: sooner}, base: newNodes(p.Nodes), now: newNodes(p.Nodes), prints: newFootprints(p),
		slots: make([][]Slot, len(p.Tasks)), started: make([]float64, len(p.Tasks))}
	groups := len(f.now.total)
	f.waiting, f.freed, f.tried = make([][]int, groups), make([]int, groups), make([]int, groups)
	for i := range p.Tasks {
		if t := &p.Tasks[i]; len(t.Held) > 0 {
			f.base.take(t.Held)
			f.ends = append(f.ends, finish{t.Left, i})
		}
	}
	slices.SortFunc(f.ends, finish.compare)
	return f
}

// run returns what s costs, +Inf as soon as that is above limit. After a finite
// answer started and slots hold when and where each task starts that is not kept.
func (f *rollout) run(s *proposal, limit float64) float64 {
	cost := f.begin(s)
	for t := 0.0; ; t = f.end(s) {
		cost += f.start(s, t)
		if f.left == 0 {
			return cost + f.p.End*f.last
		}
		if len(f.queue.Items) == 0 || cost+f.least+t*f.weight+f.p.End*max(t, f.last) > limit {
			return inf
		}
	}
}

// begin goes back to the present and returns what those kept cost.
func (f *rollout) begin(s *proposal) (cost float64) {
	f.now.set(f.base)
	f.queue.Items, f.pending, f.last, f.least, f.weight = f.queue.Items[:0], f.pending[:0], 0, 0, 0
	for _, e := range f.ends {
		t := &f.p.Tasks[e.task]
		if !s.keep[e.task] {
			f.now.give(t.Held)
			continue
		}
		f.queue.Items = append(f.queue.Items, e) // ascending, so a heap
		f.last = max(f.last, e.at)
		cost += f.p.keeping(t)
	}
	f.lineUp(s)
	f.steps += len(f.p.Nodes) + len(s.order)
	return cost
}

// lineUp puts all tasks to start into lines.
func (f *rollout) lineUp(s *proposal) {
	for g, prints := range f.waiting {
		for _, k := range prints { // of a run that was given up
			f.lines[k].places = f.lines[k].places[:0]
		}
		f.waiting[g], f.tried[g] = prints[:0], -1
	}
	f.strict = 0
	for _, k := range s.order {
		if s.keep[k] {
			continue
		}
		t := &f.p.Tasks[k]
		w := &t.Candidates[s.way[k]]
		f.least += f.p.least(t, w)
		f.weight += f.p.urgency(t, w.Seconds)
		if s.strict[k] {
			f.strict++
		}
		print := f.prints.of(k, s.way[k], w)
		for len(f.lines) <= print {
			f.lines = append(f.lines, line{})
		}
		l := &f.lines[print]
		if len(l.places) == 0 {
			l.served, l.full = 0, -1
			f.waiting[w.Group] = append(f.waiting[w.Group], print)
		}
		l.places = append(l.places, len(f.pending))
		f.pending = append(f.pending, k)
	}
	f.left = len(f.pending)
}

// start starts the tasks that fit at t, in order, and returns their cost.
func (f *rollout) start(s *proposal, at float64) (cost float64) {
	barrier := f.findRoom(s)
	for len(f.room) > 0 {
		k := f.next()
		l := &f.lines[f.room[k]]
		if l.head() > barrier {
			break
		}
		task := f.pending[l.head()]
		t := &f.p.Tasks[task]
		w := &t.Candidates[s.way[task]]
		slots, ok := f.now.fit(w, f.slots[task][:0])
		f.slots[task] = slots
		if !ok {
			barrier = min(barrier, f.fail(s, l, w.Group))
			f.room = slices.Delete(f.room, k, k+1)
			continue
		}
		if l.served++; l.served == len(l.places) {
			f.room = slices.Delete(f.room, k, k+1)
		}
		if s.strict[task] {
			f.strict--
		}
		f.left--
		f.steps += moveSteps
		r := w.at(at)
		f.started[task] = at
		f.queue.Push(finish{r.end, task})
		f.last = max(f.last, r.end)
		f.least -= f.p.least(t, w)
		f.weight -= f.p.urgency(t, w.Seconds)
		cost += f.p.cost(t, r)
	}
	return cost
}

// next returns the place in room of the footprint with the first waiting task.
func (f *rollout) next() (first int) {
	for k, print := range f.room {
		if f.lines[print].head() < f.lines[f.room[first]].head() {
			first = k
		}
	}
	return first
}

// findRoom sets room and returns the place in pending behind which no task may start: that of the first strict task
// without room. A group without an end since the last try has no room.
func (f *rollout) findRoom(s *proposal) (barrier int) {
	f.room, barrier = f.room[:0], len(f.pending)
	for g, prints := range f.waiting {
		if f.strict == 0 {
			if f.tried[g] == f.freed[g] {
				continue
			}
			f.tried[g] = f.freed[g]
		}
		wait := prints[:0]
		for _, k := range prints {
			l := &f.lines[k]
			if l.served == len(l.places) {
				l.places = l.places[:0]
				continue
			}
			wait = append(wait, k)
			f.steps++
			if l.full < f.freed[g] && f.now.room(&f.prints.all[k]) {
				f.room = append(f.room, k)
			} else {
				barrier = min(barrier, f.fail(s, l, g))
			}
		}
		f.waiting[g] = wait
	}
	return barrier
}

// fail records that a group has no room for a line, and returns the place of its first strict task.
func (f *rollout) fail(s *proposal, l *line, group int) int {
	l.full = f.freed[group]
	if f.strict > 0 {
		for _, place := range l.places[l.served:] {
			if s.strict[f.pending[place]] {
				return place
			}
		}
	}
	return len(f.pending)
}

// end ends those that end next, and returns when that is.
func (f *rollout) end(s *proposal) float64 {
	at := f.queue.Items[0].at
	for len(f.queue.Items) > 0 && f.queue.Items[0].at == at {
		k := f.queue.Pop().task
		slots := f.slots[k]
		if s.keep[k] {
			slots = f.p.Tasks[k].Held
		}
		f.now.give(slots)
		f.freed[f.now.group[slots[0].Node]]++
		f.steps += moveSteps
	}
	return at
}

func devices(slots []Slot) (n int) {
	for _, s := range slots {
		n += s.Devices
	}
	return n
}
