package lookahead

import (
	"slices"
)

// change changes next at random, and reports whether it differs.
func (s *search) change() bool {
	switch {
	case len(s.late) > 0 && s.rng.IntN(4) == 0:
		s.hurry(s.late[s.rng.IntN(len(s.late))])
		return true
	case len(s.runs) > 0 && s.rng.IntN(4) == 0:
		s.toggleRestart(s.runs[s.rng.IntN(len(s.runs))])
		return true
	}
	n := &s.next
	at := s.rng.IntN(len(n.order))
	task := n.order[at]
	if n.keep[task] {
		return false
	}
	switch k := s.rng.IntN(10); {
	case k < 4:
		return s.changeCandidate(task)
	case k < 6:
		toFront(n.order, at, 0)
		return at > 0
	case k < 7:
		toFront(n.order, at, s.rng.IntN(at+1))
		return true
	case k < 9:
		to := s.rng.IntN(len(n.order))
		n.order[at], n.order[to] = n.order[to], n.order[at]
		return to != at
	}
	n.strict[task] = !n.strict[task]
	return true
}

// toggleRestart restarts a running task that was kept, or keeps one that was to be restarted.
func (s *search) toggleRestart(task int) {
	if s.next.keep[task] {
		s.restart(task)
	} else {
		s.next.keep[task] = true
	}
}

// restart restarts a running task with a random candidate, as often as not first.
func (s *search) restart(task int) {
	s.next.keep[task] = false
	s.changeCandidate(task)
	if s.rng.IntN(2) == 0 {
		s.first(task)
	}
}

// first puts a task first.
func (s *search) first(task int) { toFront(s.next.order, slices.Index(s.next.order, task), 0) }

// hurry puts a late task first, with a candidate that is on time if there is one, and
// may make room for it.
func (s *search) hurry(task int) {
	s.next.keep[task] = false
	if !s.punctual(task) {
		s.changeCandidate(task)
	}
	if len(s.runs) > 0 && s.rng.IntN(4) > 0 {
		s.makeRoom(&s.p.Tasks[task].Candidates[s.next.candidate[task]])
	}
	s.first(task)
}

// punctual gives a task a random candidate with the least lateness if it starts now,
// and reports whether there is one.
func (s *search) punctual(task int) bool {
	t, found := &s.p.Tasks[task], 0
	least := t.leastLate()
	for w := range t.Candidates {
		if t.Candidates[w].late(0) <= least+onTime {
			if found++; s.rng.IntN(found) == 0 {
				s.next.candidate[task] = w
			}
		}
	}
	return found > 0
}

// onTime is the lateness, in seconds, that still counts as on time, for rounding errors.
const onTime = 1e-3

// makeRoom makes room for w on random nodes. It restarts tasks with devices there, those
// without a deadline first.
func (s *search) makeRoom(w *Candidate) {
	nodes := s.f.base
	var chosen []int
	for _, count := range w.Counts {
		for range nodeTries {
			node := s.rng.IntN(len(s.p.Nodes))
			if int(nodes.all[node].group) == w.Group && s.p.Nodes[node].Devices >= count && !slices.Contains(chosen, node) {
				s.vacate(node, count)
				chosen = append(chosen, node)
				break
			}
		}
	}
}

// nodeTries is how often makeRoom draws a node per count.
const nodeTries = 16

// vacate restarts tasks on a node until a number of devices is free.
func (s *search) vacate(node, count int) {
	free := int(s.f.base.all[node].free)
	for _, i := range s.held(node) {
		if !s.next.keep[i] {
			free += s.on(i, node)
		}
	}
	for _, guaranteed := range []bool{false, true} {
		for _, i := range s.held(node) {
			if free >= count {
				return
			}
			if s.next.keep[i] && (s.p.Tasks[i].Late > 0) == guaranteed {
				s.restart(i)
				free += s.on(i, node)
			}
		}
	}
}

// held returns the tasks with devices of a node that may be restarted.
func (s *search) held(node int) []int {
	if s.holders == nil {
		s.holders = make([][]int, len(s.p.Nodes))
		for _, i := range s.runs {
			for _, h := range s.p.Tasks[i].Held {
				s.holders[h.Node] = append(s.holders[h.Node], i)
			}
		}
	}
	return s.holders[node]
}

// on returns the number of devices of a node that a task holds.
func (s *search) on(task, node int) (n int) {
	for _, h := range s.p.Tasks[task].Held {
		if h.Node == node {
			n += h.Devices
		}
	}
	return n
}

// changeCandidate gives a task a random candidate: as often as not an efficient one, unless the search is rough, else one
// next to its present one as often as any. It reports whether it differs.
func (s *search) changeCandidate(task int) bool {
	n := len(s.p.Tasks[task].Candidates)
	old := s.next.candidate[task]
	to := s.rng.IntN(n)
	kinds := 4
	if s.rough {
		kinds = 2
	}
	switch kind := s.rng.IntN(kinds); {
	case kind < kinds-2:
		efficient := s.efficientOf(task)
		to = efficient[s.rng.IntN(len(efficient))]
	case kind == kinds-2:
		to = min(max(old+s.rng.IntN(5)-2, 0), n-1)
	}
	s.next.candidate[task] = to
	return to != old
}

// efficientOf returns the candidates of a task that are cheapest in their group at one of prices.
func (s *search) efficientOf(task int) []int {
	if s.efficient == nil {
		s.efficient = make([][]int, len(s.p.Tasks))
	}
	if s.efficient[task] == nil {
		for group := range s.f.base.total {
			for _, c := range s.cheapest(task, group) {
				if c >= 0 && !slices.Contains(s.efficient[task], c) {
					s.efficient[task] = append(s.efficient[task], c)
				}
			}
		}
	}
	return s.efficient[task]
}

// toFront moves the element at from to the earlier place to.
func toFront(order []int, from, to int) {
	k := order[from]
	copy(order[to+1:from+1], order[to:from])
	order[to] = k
}
