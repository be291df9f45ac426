package sim

import (
	"cmp"
	"time"
)

// kind orders what happens at one instant. Arrivals come before wake-ups: they
// are read from the sorted workload, not from the queue.
type kind uint8

const (
	completion kind = iota
	outage          // a node goes down, or up again
	wakeUp
)

// event is something to come. It is stale, and skipped, once its version is not
// that of its job (or of the last decision, for a wake-up) any more.
type event struct {
	at      time.Duration
	kind    kind
	seq     uint64 // order of creation, the last tie-break
	version uint32
	job     *job // of a completion
	node    int  // of an outage
}

func (a event) before(b event) bool {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.seq, b.seq)) < 0
}

// queue is a binary heap of events.
type queue struct {
	heap []event
	seq  uint64
}

func (q *queue) push(e event) {
	e.seq = q.seq
	q.seq++
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !q.heap[i].before(q.heap[parent]) {
			break
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *queue) pop() event {
	top := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0], q.heap[last] = q.heap[last], event{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if q.heap[c].before(q.heap[least]) {
				least = c
			}
		}
		if least == i {
			return top
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}
