package lookahead

import (
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/heap"
)

// proposal is the decisions about every task, from which a rollout computes a schedule.
type proposal struct {
	order     []int  // tasks that may be started, including those that are kept
	candidate []int  // by task
	keep      []bool // by task
	strict    []bool // by task
}

func (s *proposal) set(o *proposal) {
	s.order = append(s.order[:0], o.order...)
	s.candidate = append(s.candidate[:0], o.candidate...)
	s.keep = append(s.keep[:0], o.keep...)
	s.strict = append(s.strict[:0], o.strict...)
}

// rollout computes the schedules of proposals.
type rollout struct {
	p      *Problem
	base   *nodes    // nodes now, if all tasks keep their devices
	ends   []finish  // ends of these tasks, ascending
	kept   []float64 // their costs
	prints *footprints
	chosen []chosen // by task, see choose

	// The state of the present run:
	now     *nodes
	queue   heap.Heap[finish] // ends of running tasks
	pending []int             // tasks to start, in order
	left    int               // number of them that have not started
	strict  int               // number of strict ones among these
	lines   []line            // by footprint
	shapes  []shapeQueue      // by shape
	waiting [][]int           // by group, shapes with waiting tasks
	freed   []int             // by group, number of ends there
	tried   []int             // by group, freed at the last try of all waiting tasks, -1 = never
	room    []int             // scratch of start: shapes with room
	least   float64           // cost of the tasks left if they start now
	weight  float64           // least cost of delaying them by a second
	last    float64           // latest end of the other tasks
	on      [][]int32         // by task, the node of each count of its candidate, valid for started ones
	started []float64         // by task, the time of its start

	steps int // work of all runs
}

// moveSteps is the work of a start or an end, which changes nodes and the queue, in steps.
const moveSteps = 16

func newRollout(p *Problem) *rollout {
	f := &rollout{p: p, queue: heap.Heap[finish]{Less: sooner}, base: newNodes(p.Nodes), now: newNodes(p.Nodes), prints: newFootprints(p),
		chosen: make([]chosen, len(p.Tasks)), on: make([][]int32, len(p.Tasks)), started: make([]float64, len(p.Tasks))}
	groups := len(f.now.total)
	f.waiting, f.freed, f.tried = make([][]int, groups), make([]int, groups), make([]int, groups)
	for i := range p.Tasks {
		if t := &p.Tasks[i]; len(t.Held) > 0 {
			f.base.take(t.Held)
			f.ends = append(f.ends, finish{t.Left, i})
		}
	}
	slices.SortFunc(f.ends, finish.compare)
	for _, e := range f.ends {
		f.kept = append(f.kept, p.keeping(&p.Tasks[e.task]))
	}
	return f
}

// chosen is the candidate that a task has in a proposal, and what a rollout needs to know of it. It is kept for the next
// proposal, in which most tasks have the same.
type chosen struct {
	Candidate
	index int // 1 + that of the candidate, 0 = none yet
	print int // its footprint
	// The task's cost if it starts now, and its urgency then:
	least, urgency float64
}

// choose returns the given candidate of a task.
func (f *rollout) choose(task, candidate int) *chosen {
	c := &f.chosen[task]
	if c.index != candidate+1 {
		t := &f.p.Tasks[task]
		w := &t.Candidates[candidate]
		*c = chosen{*w, candidate + 1, f.prints.find(w), f.p.least(t, w), f.p.urgency(t, w.Seconds)}
	}
	return c
}

// run returns the cost of s, or +Inf if it exceeds limit. After a finite result started
// and on have the start and nodes of each task that is not kept.
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

// begin resets the state to the present and returns the cost of the tasks that are kept.
func (f *rollout) begin(s *proposal) (cost float64) {
	f.now.set(f.base)
	f.queue.Items, f.pending, f.last, f.least, f.weight = f.queue.Items[:0], f.pending[:0], 0, 0, 0
	for i, e := range f.ends {
		if !s.keep[e.task] {
			f.now.give(f.p.Tasks[e.task].Held)
			continue
		}
		f.queue.Items = append(f.queue.Items, e) // ascending, so a heap
		f.last = max(f.last, e.at)
		cost += f.kept[i]
	}
	f.lineUp(s)
	f.steps += len(f.p.Nodes) + len(s.order)
	return cost
}

// lineUp puts all tasks to start into the lines of their footprints.
func (f *rollout) lineUp(s *proposal) {
	for g, shapes := range f.waiting {
		for _, k := range shapes { // left over from a run that ended at its limit
			f.reset(&f.shapes[k])
		}
		f.waiting[g], f.tried[g] = shapes[:0], -1
	}
	f.strict = 0
	for _, k := range s.order {
		if s.keep[k] {
			continue
		}
		c := f.choose(k, s.candidate[k])
		f.least += c.least
		f.weight += c.urgency
		if s.strict[k] {
			f.strict++
		}
		for len(f.lines) <= c.print {
			f.lines = append(f.lines, line{})
		}
		for len(f.shapes) < len(f.prints.shapes) {
			f.shapes = append(f.shapes, shapeQueue{open: heap.Heap[firstTask]{Less: earlier}})
		}
		l := &f.lines[c.print]
		if len(l.places) == 0 {
			l.started, l.strict = 0, 0
			shape := f.prints.all[c.print].shape
			q := &f.shapes[shape]
			if q.len() == 0 {
				q.full, q.tested = -1, -1
				g := f.prints.shapes[shape].group
				f.waiting[g] = append(f.waiting[g], shape)
			}
			q.join(len(f.pending), c.print)
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
		q := &f.shapes[f.room[k]]
		place := q.open.Items[0].place
		if place > barrier {
			break
		}
		task := f.pending[place]
		t := &f.p.Tasks[task]
		c := &f.chosen[task]
		w := &c.Candidate
		on, ok := f.now.fit(w, slices.Grow(f.on[task][:0], len(w.Counts)))
		f.on[task] = on
		switch {
		case ok:
			f.advance(q)
		case f.now.room(&f.prints.shapes[f.room[k]]):
			barrier = min(barrier, f.putAside(s, q))
		default:
			barrier = min(barrier, f.fail(s, q, w.Group))
			f.room = slices.Delete(f.room, k, k+1)
			continue
		}
		if len(q.open.Items) == 0 {
			f.room = slices.Delete(f.room, k, k+1)
		}
		if !ok {
			continue
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
		f.least -= c.least
		f.weight -= c.urgency
		cost += f.p.cost(t, r)
	}
	return cost
}

// next returns the index in room of the shape with the first waiting task.
func (f *rollout) next() (first int) {
	for k, shape := range f.room {
		if earlier(f.shapes[shape].open.Items[0], f.shapes[f.room[first]].open.Items[0]) {
			first = k
		}
	}
	return first
}

// findRoom sets room. It returns the index in pending of the first strict task without room, after which no task may
// start. A group without an end since the last try has no room.
func (f *rollout) findRoom(s *proposal) (barrier int) {
	f.room, barrier = f.room[:0], len(f.pending)
	for g, shapes := range f.waiting {
		if f.strict == 0 {
			if f.tried[g] == f.freed[g] {
				continue
			}
			f.tried[g] = f.freed[g]
		}
		wait := shapes[:0]
		for _, k := range shapes {
			q := &f.shapes[k]
			if q.len() == 0 {
				continue
			}
			wait = append(wait, k)
			f.steps++
			f.reopen(q, f.freed[g])
			if q.full == f.freed[g] || !f.now.room(&f.prints.shapes[k]) {
				barrier = min(barrier, f.fail(s, q, g))
				continue
			}
			barrier = min(barrier, f.firstAside(s, q))
			if len(q.open.Items) > 0 {
				f.room = append(f.room, k)
			}
		}
		f.waiting[g] = wait
	}
	return barrier
}

// end ends the tasks with the earliest end, and returns that time.
func (f *rollout) end(s *proposal) float64 {
	at := f.queue.Items[0].at
	for len(f.queue.Items) > 0 && f.queue.Items[0].at == at {
		k := f.queue.Pop().task
		t := &f.p.Tasks[k]
		if s.keep[k] {
			f.now.give(t.Held)
			f.freed[f.now.all[t.Held[0].Node].group]++
		} else {
			w := &f.chosen[k].Candidate
			f.now.giveBack(w, f.on[k])
			f.freed[w.Group]++
		}
		f.steps += moveSteps
	}
	return at
}

// slotsOf returns the devices of a started task.
func (f *rollout) slotsOf(task int, w *Candidate) []Slot {
	out := make([]Slot, len(f.on[task]))
	for i, node := range f.on[task] {
		out[i] = w.slot(i, node)
	}
	return out
}

func devices(slots []Slot) (n int) {
	for _, s := range slots {
		n += s.Devices
	}
	return n
}
