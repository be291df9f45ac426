package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// sink keeps the messages of Events.
type sink struct {
	typedcore.EventExpansion
	written []string
	counted int
	errs    []error // of the next requests
}

func (s *sink) CreateWithEventNamespaceWithContext(_ context.Context, e *core.Event) (*core.Event, error) {
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return nil, err
	}
	s.written = append(s.written, e.Message)
	return e, nil
}

func (s *sink) PatchWithEventNamespaceWithContext(_ context.Context, e *core.Event, _ []byte) (*core.Event, error) {
	s.counted++
	return e, nil
}

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
		if want := numbered(0, 5000); !slices.Equal(s.written, want) {
			t.Fatalf("%d Events are written, in another order, or not 5000", len(s.written))
		}
		time.Sleep(eventEvery / 2)
		q.begin()
		q.begin()
		add(5)
		q.end()
		synctest.Wait()
		if n := len(s.written); n != 5000 {
			t.Errorf("%d Events are written beside a job", n-5000)
		}
		time.Sleep(2 * eventEvery)
		if n := len(s.written); n != 5002 {
			t.Errorf("%d Events are written in two seconds beside a job, want 2", n-5000)
		}
		q.end()
		synctest.Wait()
		if want := numbered(0, 5005); !slices.Equal(s.written, want) {
			t.Errorf("%d Events are written after the job, want 5", len(s.written)-5000)
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
		if want := numbered(3, maxEvents+3); !slices.Equal(s.written, want) {
			t.Errorf("%d Events, want %d, the last of them", len(s.written), maxEvents)
		}
	})
}

// TestEventsRetry: an Event is written again after the server could not be reached, and not after the server has refused it.
func TestEventsRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, add := queued(t)
		s.errs = []error{errors.New("connection refused"), errors.New("connection refused")}
		add(2)
		time.Sleep(3 * eventRetry)
		if want := numbered(0, 2); !slices.Equal(s.written, want) {
			t.Errorf("%q are written, want %q", s.written, want)
		}
		s.errs = []error{apierrors.NewBadRequest("no")}
		add(2)
		time.Sleep(3 * eventRetry)
		if want := []string{"0", "1", "3"}; !slices.Equal(s.written, want) {
			t.Errorf("%q are written, want %q", s.written, want)
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
		if len(s.written) != 1 || s.counted != 2 {
			t.Errorf("%d Events, counted %d times, want 1 and 2", len(s.written), s.counted)
		}
	})
}
