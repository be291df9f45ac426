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
	p    *Problem
	base *nodes // while all that hold devices keep them
	ends queue  // when those end, ascending

	// Of the present run:
	now     *nodes
	queue   queue     // who ends when
	pending []int     // who has not started, in order
	least   float64   // what those cost if they start at once
	weight  float64   // by how much more a second later, at the least
	last    float64   // when the last of the others ends
	slots   [][]Slot  // by task, of those started
	started []float64 // by task

	steps int // of work, in all runs
}

func newForward(p *Problem) *forward {
	f := &forward{p: p, base: newNodes(p.Nodes), now: newNodes(p.Nodes),
		slots: make([][]Slot, len(p.Tasks)), started: make([]float64, len(p.Tasks))}
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
		if len(f.pending) == 0 {
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
	for _, k := range s.order {
		if s.keep[k] {
			continue
		}
		f.pending = append(f.pending, k)
		t := &f.p.Tasks[k]
		w := &t.Ways[s.way[k]]
		f.least += f.p.least(t, w)
		f.weight += f.p.urgency(t, w.Seconds)
	}
	f.steps += len(f.p.Nodes) + len(s.order)
	return cost
}

// start starts at t who fits, in order, and returns what those cost.
func (f *forward) start(s *schedule, at float64) (cost float64) {
	f.steps += len(f.pending)
	left := f.pending[:0]
	for i, k := range f.pending {
		t := &f.p.Tasks[k]
		w := &t.Ways[s.way[k]]
		slots, ok := f.now.fit(w, f.slots[k][:0])
		f.slots[k] = slots
		if !ok {
			left = append(left, k)
			if s.strict[k] {
				left = append(left, f.pending[i+1:]...)
				break
			}
			continue
		}
		r := w.at(at)
		f.started[k] = at
		f.queue.push(finish{r.end, k})
		f.last = max(f.last, r.end)
		f.least -= f.p.least(t, w)
		f.weight -= f.p.urgency(t, w.Seconds)
		cost += f.p.cost(t, r)
	}
	f.pending = left
	return cost
}

// end ends those that end next, and returns when that is.
func (f *forward) end(s *schedule) float64 {
	at := f.queue[0].at
	for len(f.queue) > 0 && f.queue[0].at == at {
		k := f.queue.pop().task
		if s.keep[k] {
			f.now.give(f.p.Tasks[k].Held)
		} else {
			f.now.give(f.slots[k])
		}
		f.steps++
	}
	return at
}

func devices(slots []Slot) (n int) {
	for _, s := range slots {
		n += s.Devices
	}
	return n
}
