package lookahead

import "slices"

// schedule is a candidate: what is decided of every task.
type schedule struct {
	order  []int  // the tasks that may be started, those that are kept among them
	way    []int  // by task
	keep   []bool // by task
	strict []bool // by task
}

func (s *schedule) set(o *schedule) {
	s.order = append(s.order[:0], o.order...)
	s.way = append(s.way[:0], o.way...)
	s.keep = append(s.keep[:0], o.keep...)
	s.strict = append(s.strict[:0], o.strict...)
}

// forward runs schedules forward in time.
type forward struct {
	p      *Problem
	base   *nodes // while all that hold devices keep them
	ends   queue  // when those end, ascending
	prints *footprints

	// Of the present run:
	now     *nodes
	queue   queue     // who ends when
	pending []int     // who is started, in order
	left    int       // how many of them have not been
	strict  int       // how many of those are strict
	lines   []line    // by footprint
	waiting [][]int   // by group, footprints for which somebody waits
	freed   []int     // by group, how often somebody ended there
	tried   []int     // by group, freed when all who wait there had been tried last, -1 = they have not been
	room    []int     // scratch of start: footprints for which there is room
	least   float64   // what those left cost if they start at once
	weight  float64   // by how much more a second later, at the least
	last    float64   // when the last of the others ends
	slots   [][]Slot  // by task, of those started
	started []float64 // by task

	steps int // of work, in all runs
}

// moveSteps is the work of a start or an end, for which nodes and the queue change, in steps.
const moveSteps = 16

// line is who waits for room for a footprint.
type line struct {
	places []int // in pending, ascending
	served int   // how many of those have started
	full   int   // freed of the group when there was no room last, -1 = there has been so far
}

func (l *line) head() int { return l.places[l.served] }

func newForward(p *Problem) *forward {
	f := &forward{p: p, base: newNodes(p.Nodes), now: newNodes(p.Nodes), prints: newFootprints(p),
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
func (f *forward) run(s *schedule, limit float64) float64 {
	cost := f.begin(s)
	for t := 0.0; ; t = f.end(s) {
		cost += f.start(s, t)
		if f.left == 0 {
			return cost + f.p.End*f.last
		}
		if len(f.queue) == 0 || cost+f.least+t*f.weight+f.p.End*max(t, f.last) > limit {
			return inf
		}
	}
}

// begin goes back to the present and returns what those kept cost.
func (f *forward) begin(s *schedule) (cost float64) {
	f.now.set(f.base)
	f.queue, f.pending, f.last, f.least, f.weight = f.queue[:0], f.pending[:0], 0, 0, 0
	for _, e := range f.ends {
		t := &f.p.Tasks[e.task]
		if !s.keep[e.task] {
			f.now.give(t.Held)
			continue
		}
		f.queue = append(f.queue, e) // ascending, so a heap
		f.last = max(f.last, e.at)
		cost += f.p.keeping(t)
	}
	f.lineUp(s)
	f.steps += len(f.p.Nodes) + len(s.order)
	return cost
}

// lineUp has everybody wait who is started.
func (f *forward) lineUp(s *schedule) {
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
		w := &t.Ways[s.way[k]]
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

// start starts at t who fits, in order, and returns what those cost.
func (f *forward) start(s *schedule, at float64) (cost float64) {
	barrier := f.findRoom(s)
	for len(f.room) > 0 {
		k := f.next()
		l := &f.lines[f.room[k]]
		if l.head() > barrier {
			break
		}
		task := f.pending[l.head()]
		t := &f.p.Tasks[task]
		w := &t.Ways[s.way[task]]
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
		f.queue.push(finish{r.end, task})
		f.last = max(f.last, r.end)
		f.least -= f.p.least(t, w)
		f.weight -= f.p.urgency(t, w.Seconds)
		cost += f.p.cost(t, r)
	}
	return cost
}

// next returns the place in room of the footprint for which somebody waits that is before all others.
func (f *forward) next() (first int) {
	for k, print := range f.room {
		if f.lines[print].head() < f.lines[f.room[first]].head() {
			first = k
		}
	}
	return first
}

// findRoom sets room and returns the place in pending behind which nobody may start: that of the first who is strict
// and has no room. Where nobody has ended since there was no room there is none now.
func (f *forward) findRoom(s *schedule) (barrier int) {
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

// fail notes that there is no room for a line in a group, and returns the place of the first in it who is strict.
func (f *forward) fail(s *schedule, l *line, group int) int {
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
func (f *forward) end(s *schedule) float64 {
	at := f.queue[0].at
	for len(f.queue) > 0 && f.queue[0].at == at {
		k := f.queue.pop().task
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
