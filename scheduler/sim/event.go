package sim

import (
	"time"

	"github.com/pacer-ml/pacer/scheduler/internal/heap"
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

func before(a, b event) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.kind != b.kind {
		return a.kind < b.kind
	}
	return a.seq < b.seq
}

// queue is the events to come, in order.
type queue struct {
	heap.Heap[event]
	seq uint64 // events made so far
}

func newQueue() queue { return queue{Heap: heap.Heap[event]{Less: before}} }

// add gives e the next sequence number and puts it in.
func (q *queue) add(e event) {
	e.seq = q.seq
	q.seq++
	q.Push(e)
}
