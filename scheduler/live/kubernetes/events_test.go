package kubernetes

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// sink keeps the messages of Events.
type sink struct {
	typedcore.EventExpansion
	mu      sync.Mutex
	written []string
	first   []time.Time // FirstTimestamp of each
	counted int
	takes   time.Duration
	errs    []error // of the next requests
}

func (s *sink) CreateWithEventNamespaceWithContext(_ context.Context, e *core.Event) (*core.Event, error) {
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return nil, err
	}
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written, s.first = append(s.written, e.Message), append(s.first, e.FirstTimestamp.Time)
	e.ResourceVersion = "7"
	return e, nil
}

func (s *sink) PatchWithEventNamespaceWithContext(_ context.Context, e *core.Event, _ []byte) (*core.Event, error) {
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return nil, err
	}
	if e.ResourceVersion != "7" {
		return nil, fmt.Errorf("version %q, want that of the server", e.ResourceVersion)
	}
	s.counted++
	return e, nil
}

func (s *sink) messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.written)
}

func (s *sink) count() int { return len(s.messages()) }

// queued returns a queue that runs, and a function that adds Events, each of a job of its own.
func queued(t *testing.T) (*eventQueue, *sink, func(n int)) {
	s := &sink{}
	q := newEventQueue(s, time.Minute)
	go q.run(t.Context())
	added := 0
	return q, s, func(n int) {
		for range n {
			q.add(kubetest.Job(fmt.Sprint("j", added), 1, 1, nil), false, "Decided", fmt.Sprint(added))
			added++
		}
	}
}

func numbered(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

// TestEventsWait: Events wait while jobs are written, one a second excepted, and none is lost.
func TestEventsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s, add := queued(t)
		add(5000)
		synctest.Wait()
		if want := numbered(0, 5000); !slices.Equal(s.messages(), want) {
			t.Fatalf("%d Events are written, in another order, or not 5000", s.count())
		}
		time.Sleep(eventEvery / 2)
		q.begin()
		q.begin()
		add(5)
		q.end()
		synctest.Wait()
		if n := s.count(); n != 5000 {
			t.Errorf("%d Events are written beside a job", n-5000)
		}
		time.Sleep(2 * eventEvery)
		synctest.Wait()
		if n := s.count(); n != 5002 {
			t.Errorf("%d Events are written in two seconds beside a job, want 2", n-5000)
		}
		q.end()
		synctest.Wait()
		if want := numbered(0, 5005); !slices.Equal(s.messages(), want) {
			t.Errorf("%d Events are written after the job, want 5", s.count()-5000)
		}
	})
}

// TestEventsBounded: of more Events than may wait the oldest are dropped.
func TestEventsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s, add := queued(t)
		q.begin()
		add(maxEvents + 3)
		q.end()
		synctest.Wait()
		if want := numbered(3, maxEvents+3); !slices.Equal(s.messages(), want) {
			t.Errorf("%d Events, want %d, the last of them", s.count(), maxEvents)
		}
	})
}

// TestEventsRetry: an Event is written again after the server could not be reached, and not after the server has refused it.
func TestEventsRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, add := queued(t)
		refused := &net.OpError{Op: "dial", Err: net.ErrClosed}
		s.errs = []error{refused, refused}
		added := time.Now()
		add(2)
		time.Sleep(3 * eventRetry)
		synctest.Wait()
		if want := numbered(0, 2); !slices.Equal(s.messages(), want) || !s.first[0].Equal(added) {
			t.Errorf("%q are written, of %v, want %q of %v", s.messages(), s.first, want, added)
		}
		s.errs = []error{apierrors.NewBadRequest("no")}
		add(2)
		time.Sleep(3 * eventRetry)
		synctest.Wait()
		if want := []string{"0", "1", "3"}; !slices.Equal(s.messages(), want) {
			t.Errorf("%q are written, want %q", s.messages(), want)
		}
	})
}

// TestEventsCounted: an Event that repeats is counted in the first.
func TestEventsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s, _ := queued(t)
		j := kubetest.Job("a", 1, 1, nil)
		for range 3 {
			q.add(j, true, "Faulty", "no")
		}
		synctest.Wait()
		if s.count() != 1 || s.counted != 2 {
			t.Errorf("%d Events, counted %d times, want 1 and 2", s.count(), s.counted)
		}
		s.errs = []error{apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, "a")}
		q.add(j, true, "Faulty", "no")
		synctest.Wait()
		if s.count() != 2 {
			t.Error("an Event that was removed is not written again")
		}
	})
}

// TestLastEvents: what waits at the end of a process is written for a while, and then given up.
func TestLastEvents(t *testing.T) {
	for takes, want := range map[time.Duration]int{10 * time.Millisecond: 50, 300 * time.Millisecond: 6} {
		synctest.Test(t, func(t *testing.T) {
			s := &sink{takes: takes}
			c := &Cluster{events: newEventQueue(s, time.Minute)}
			ctx, cancel := context.WithCancel(t.Context())
			c.events.start(ctx)
			for i := range 50 {
				c.events.add(kubetest.Job(fmt.Sprint("j", i), 1, 1, nil), false, "Decided", "")
			}
			cancel()
			c.Finish()
			synctest.Wait()
			if n := s.count(); n != want {
				t.Errorf("%d Events of %v each are written, want %d", n, takes, want)
			}
			time.Sleep(2 * lastEvents)
			synctest.Wait()
			if n := s.count(); n > want+1 {
				t.Errorf("%d Events are written long after the end", n-want)
			}
		})
	}
}
