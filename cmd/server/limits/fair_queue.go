package limits

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// FairQueue admits requests to a number of seats, in the manner of Kubernetes' API
// priority and fairness. Requests of one flow, a client, wait in a few of many queues
// (shuffle sharding), so that a flow with many requests delays few other flows.
// Queues share the seats by the seconds of their requests (start-time fair queueing,
// Goyal et al., SIGCOMM 1996, section 2), estimated on arrival and corrected at the end.
type FairQueue struct {
	Seats    int
	Patience time.Duration // the longest wait

	mu      sync.Mutex
	used    int
	waiting int
	work    float64 // seconds of the waiting requests
	now     float64 // virtual time: the start tag of the last dispatched request
	queues  [numQueues]flowQueue
}

// flowQueue is one queue. Its requests wait in their order of arrival.
type flowQueue struct {
	start   float64 // virtual start of the first waiting request
	work    float64 // seconds of the waiting requests
	waiting []*waiter
}

type waiter struct {
	cost     float64
	queue    *flowQueue
	admitted chan struct{} // closed when it has a seat
}

const (
	numQueues = 128
	handSize  = 6  // queues of one flow
	maxQueue  = 50 // requests in one queue
)

// ErrBusy refuses a request that no seat is free for in time.
var ErrBusy = errors.New("no seat")

// Acquire waits for a seat. The caller calls release with the seconds that the
// request really took. The error is ErrBusy or that of ctx.
func (q *FairQueue) Acquire(ctx context.Context, flow uint64, cost float64) (release func(took time.Duration), err error) {
	q.mu.Lock()
	queue := q.shortest(flow)
	if len(queue.waiting) >= maxQueue {
		q.mu.Unlock()
		return nil, ErrBusy
	}
	w := &waiter{cost, queue, make(chan struct{})}
	if len(queue.waiting) == 0 {
		queue.start = max(queue.start, q.now)
	}
	queue.waiting = append(queue.waiting, w)
	queue.work += cost
	q.work += cost
	q.waiting++
	q.dispatch()
	q.mu.Unlock()

	if err := q.wait(ctx, w); err != nil {
		return nil, err
	}
	return func(took time.Duration) { q.release(w, took) }, nil
}

// wait returns once w has a seat, or removes it.
func (q *FairQueue) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.admitted:
		return nil
	default:
	}
	t := time.NewTimer(q.Patience)
	defer t.Stop()
	err := ErrBusy
	select {
	case <-w.admitted:
		return nil
	case <-t.C:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-w.admitted: // meanwhile
		return nil
	default:
	}
	w.queue.waiting = slices.DeleteFunc(w.queue.waiting, func(other *waiter) bool { return other == w })
	q.left(w)
	return err
}

// left takes w out of the sums of the waiting requests.
func (q *FairQueue) left(w *waiter) {
	w.queue.work -= w.cost
	q.work -= w.cost
	q.waiting--
}

// release frees the seat of w and charges its queue for the time it took.
func (q *FairQueue) release(w *waiter, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used--
	w.queue.start += took.Seconds() - w.cost
	q.dispatch()
}

// dispatch gives free seats to the queues with the least virtual start.
func (q *FairQueue) dispatch() {
	for q.used < q.Seats && q.waiting > 0 {
		var next *flowQueue
		for i := range q.queues {
			if c := &q.queues[i]; len(c.waiting) > 0 && (next == nil || c.start < next.start) {
				next = c
			}
		}
		w := next.waiting[0]
		next.waiting = slices.Delete(next.waiting, 0, 1)
		q.left(w)
		q.now = max(q.now, next.start)
		next.start += w.cost
		q.used++
		close(w.admitted)
	}
}

// shortest returns the queue with the least work among those of flow.
func (q *FairQueue) shortest(flow uint64) *flowQueue {
	deal := rand.New(rand.NewPCG(flow, 0)) //nolint:gosec // spreads flows, keeps no secret
	var best *flowQueue
	for range handSize {
		if c := &q.queues[deal.IntN(numQueues)]; best == nil || c.work < best.work {
			best = c
		}
	}
	return best
}

// Delay returns about how long the waiting requests will take.
func (q *FairQueue) Delay() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Duration(q.work / float64(q.Seats) * float64(time.Second))
}

// Length returns the number of waiting requests and of used seats.
func (q *FairQueue) Length() (waiting, used int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting, q.used
}
