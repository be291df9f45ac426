package sim

import (
	"time"

	"github.com/pacer-ml/pacer/scheduler/internal/heap"
)

// kind orders the events of one instant. Arrivals come before wake-ups; they are read
// from the sorted workload, not from the queue.
type kind uint8

const (
	completion   kind = iota
	outage            // a node goes down, or up again
	occupation        // others take or give back devices
	cancellation      // after the arrivals
	wakeUp
)

// event is a planned event. It is stale, and skipped, once its version differs from that
// of its job, or for a wake-up from that of the last decision.
type event struct {
	at      time.Duration
	kind    kind
	seq     uint64 // order of creation, the last tie-break
	version uint32
	job     *job  // of a completion
	node    int   // of an outage
	cause   cause // of an outage
	index   int   // of an occupation in Config.Others, of a cancelled job in Result.Jobs
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

// queue is the planned events, in order.
type queue struct {
	heap.Heap[event]
	seq uint64 // events made so far
}

func newQueue() queue { return queue{Heap: heap.Heap[event]{Less: before}} }

// add adds e with the next sequence number.
func (q *queue) add(e event) {
	e.seq = q.seq
	q.seq++
	q.Push(e)
}
