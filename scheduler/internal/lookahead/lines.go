package lookahead

import "github.com/pacer-ml/pacer/scheduler/internal/heap"

// line is the queue of the tasks that wait for room for a footprint.
type line struct {
	places  []int // indices in pending, ascending
	started int   // number of them that have started
	strict  int   // none before this one of places is strict, but started ones
}

func (l *line) head() int { return l.places[l.started] }

// shapeQueue has the lines of the footprints with one shape. They are tried by their first task. They differ in host
// resources only: without devices for the shape no line has room, however many there are.
type shapeQueue struct {
	open   heap.Heap[firstTask] // lines that may have room
	aside  []int                // lines without host resources on nodes that have the devices
	tested int                  // freed of the group when aside was filled
	full   int                  // freed of the group when there were no devices last, -1 = there always were
}

// firstTask is the index in pending of the first task of a line.
type firstTask struct{ place, line int }

func earlier(a, b firstTask) bool { return a.place < b.place }

// join adds a line. Its first task comes after those of all other lines.
func (q *shapeQueue) join(place, line int) {
	q.open.Items = append(q.open.Items, firstTask{place, line}) // ascending, so a heap
}

// len returns the number of lines with waiting tasks.
func (q *shapeQueue) len() int { return len(q.open.Items) + len(q.aside) }

// reset removes all lines.
func (f *rollout) reset(q *shapeQueue) {
	for _, first := range q.open.Items {
		f.lines[first.line].places = f.lines[first.line].places[:0]
	}
	for _, k := range q.aside {
		f.lines[k].places = f.lines[k].places[:0]
	}
	q.open.Items, q.aside = q.open.Items[:0], q.aside[:0]
}

// reopen lets lines that were put aside be tried again after an end in their group.
func (f *rollout) reopen(q *shapeQueue, freed int) {
	if q.tested == freed {
		return
	}
	for _, k := range q.aside {
		q.open.Push(firstTask{f.lines[k].head(), k})
	}
	q.aside, q.tested = q.aside[:0], freed
}

// advance counts the start of the first task of the first line.
func (f *rollout) advance(q *shapeQueue) {
	first := &q.open.Items[0]
	l := &f.lines[first.line]
	if l.started++; l.started == len(l.places) {
		l.places = l.places[:0]
		q.open.Pop()
		return
	}
	first.place = l.head()
	q.open.FixFirst()
}

// putAside records that the first line has no room. It returns the index in pending of its first strict task.
func (f *rollout) putAside(s *proposal, q *shapeQueue) int {
	k := q.open.Pop().line
	q.aside = append(q.aside, k)
	return f.firstStrict(s, k)
}

// fail records that a group has no devices for a shape, and returns the index in pending of its first strict task.
func (f *rollout) fail(s *proposal, q *shapeQueue, group int) int {
	q.full = f.freed[group]
	first := f.firstAside(s, q)
	if f.strict > 0 {
		for _, l := range q.open.Items {
			first = min(first, f.firstStrict(s, l.line))
		}
	}
	return first
}

// firstAside returns the index in pending of the first strict task of the lines that were put aside.
func (f *rollout) firstAside(s *proposal, q *shapeQueue) int {
	first := len(f.pending)
	if f.strict > 0 {
		for _, k := range q.aside {
			first = min(first, f.firstStrict(s, k))
		}
	}
	return first
}

// firstStrict returns the index in pending of the first strict task of a line, the number of pending tasks if there is none.
func (f *rollout) firstStrict(s *proposal, line int) int {
	if f.strict > 0 {
		l := &f.lines[line]
		for l.strict = max(l.strict, l.started); l.strict < len(l.places); l.strict++ {
			if place := l.places[l.strict]; s.strict[f.pending[place]] {
				return place
			}
		}
	}
	return len(f.pending)
}
