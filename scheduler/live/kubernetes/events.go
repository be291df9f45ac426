package kubernetes

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
)

const (
	maxEvents  = 20_000           // that wait; of more the oldest are dropped
	eventEvery = time.Second      // the longest wait of the next Event for writes of jobs
	eventRetry = 10 * time.Second // after a server that could not be reached
	lastEvents = 2 * time.Second  // for what waits at the end of a process
)

// eventQueue writes Events one after the other, in their order. While jobs are written it writes one in eventEvery: what is
// only read by people does not delay a start. The broadcaster of client-go drops Events if some dozens come at once.
type eventQueue struct {
	sink       typedcore.EventExpansion
	limit      time.Duration // of a request
	correlator *record.EventCorrelator
	changed    chan struct{} // of size 1

	mu      sync.Mutex
	waiting []event
	busy    int  // writes of jobs under way
	sending bool // an Event that was taken is not written yet
}

type event struct {
	of                    *core.ObjectReference
	kind, reason, message string
	at                    time.Time
}

func newEventQueue(sink typedcore.EventExpansion, limit time.Duration) *eventQueue {
	return &eventQueue{sink: sink, limit: limit, correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{}), changed: make(chan struct{}, 1)}
}

// add adds an Event of an object. It does not block.
func (q *eventQueue) add(of managed, warning bool, reason, message string) {
	ref, err := reference.GetReference(scheme.Scheme, of)
	if err != nil {
		return // an object without a kind: nothing shows its Events
	}
	e := event{of: ref, kind: core.EventTypeNormal, reason: reason, message: message, at: time.Now()}
	if warning {
		e.kind = core.EventTypeWarning
	}
	q.mu.Lock()
	if len(q.waiting) == maxEvents {
		q.waiting = q.waiting[1:]
	}
	q.waiting = append(q.waiting, e)
	q.mu.Unlock()
	q.wake()
}

func (q *eventQueue) wake() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// begin says that a job is written, until end is called.
func (q *eventQueue) begin() { q.count(1) }

func (q *eventQueue) end() {
	q.count(-1)
	q.wake()
}

func (q *eventQueue) count(n int) {
	q.mu.Lock()
	q.busy += n
	q.mu.Unlock()
}

// take returns the first Event, if there is one and no job is written, or late is set.
func (q *eventQueue) take(late bool) (e event, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || q.busy > 0 && !late {
		return event{}, false
	}
	e, q.waiting[0] = q.waiting[0], event{}
	q.waiting, q.sending = q.waiting[1:], true
	return e, true
}

// idle reports whether every Event is written.
func (q *eventQueue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0 && !q.sending
}

// start writes Events until lastEvents after ctx is done.
func (q *eventQueue) start(ctx context.Context) {
	longer, stop := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(lastEvents, stop) })
	go q.run(longer)
}

// finish waits until every Event is written, at most lastEvents.
func (q *eventQueue) finish() {
	for until := time.Now().Add(lastEvents); !q.idle() && time.Now().Before(until); {
		time.Sleep(retryLeast)
	}
}

// run writes Events until ctx is done.
func (q *eventQueue) run(ctx context.Context) {
	late := time.NewTicker(eventEvery)
	defer late.Stop()
	for ctx.Err() == nil {
		e, ok := q.take(false)
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-q.changed:
				continue
			case <-late.C:
				if e, ok = q.take(true); !ok {
					continue
				}
			}
		}
		q.write(ctx, e)
		q.mu.Lock()
		q.sending = false
		q.mu.Unlock()
	}
}

// write writes an Event, or counts it in one that is like it. It tries until the server can be reached.
func (q *eventQueue) write(ctx context.Context, e event) {
	at := meta.NewTime(e.at)
	r, err := q.correlator.EventCorrelate(&core.Event{
		ObjectMeta:     meta.ObjectMeta{Name: util.GenerateEventName(e.of.Name, e.at.UnixNano()), Namespace: e.of.Namespace},
		InvolvedObject: *e.of, Type: e.kind, Reason: e.reason, Message: e.message, Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source: core.EventSource{Component: FieldManager}, ReportingController: FieldManager,
	})
	if err != nil || r.Skip {
		return
	}
	for !q.send(ctx, r) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(eventRetry):
		}
	}
}

// send reports whether the server was reached. An Event that it refuses is lost.
func (q *eventQueue) send(ctx context.Context, r *record.EventCorrelateResult) bool {
	ctx, cancel := context.WithTimeout(ctx, q.limit)
	defer cancel()
	var now *core.Event
	var err error
	known := r.Event.Count > 1
	if known {
		now, err = q.sink.PatchWithEventNamespaceWithContext(ctx, r.Event, r.Patch)
	}
	if !known || util.IsKeyNotFoundError(err) {
		r.Event.ResourceVersion = ""
		now, err = q.sink.CreateWithEventNamespaceWithContext(ctx, r.Event)
	}
	if err == nil {
		q.correlator.UpdateState(now)
	}
	var unreachable net.Error
	return !errors.As(err, &unreachable)
}
