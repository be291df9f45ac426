package server

import (
	"context"
	"sync"
	"time"
)

// limiter bounds what is done at the same time.
type limiter struct {
	requests, searches chan struct{}
	under              *sync.WaitGroup
}

func newLimiter(requests, searches int) limiter {
	return limiter{make(chan struct{}, requests), make(chan struct{}, searches), new(sync.WaitGroup)}
}

// queueing is how long a search waits for its turn before it is refused.
const queueing = time.Second

// retryAfter is what callers that were refused are told to wait, in seconds.
const retryAfter = "1"

// enter takes a place for a request, if there is one.
func (l *limiter) enter() bool {
	select {
	case l.requests <- struct{}{}:
		l.under.Add(1)
		return true
	default:
		return false
	}
}

func (l *limiter) leave() {
	<-l.requests
	l.under.Done()
}

// pass lets a request in that takes no place.
func (l *limiter) pass() { l.under.Add(1) }

func (l *limiter) passed() { l.under.Done() }

// search takes a place for a search, waiting for it for a moment.
func (l *limiter) search(ctx context.Context) bool {
	select {
	case l.searches <- struct{}{}:
		return true
	default:
	}
	t := time.NewTimer(queueing)
	defer t.Stop()
	select {
	case l.searches <- struct{}{}:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

func (l *limiter) searched() { <-l.searches }

// wait returns when no request is under way. None may be entering.
func (l *limiter) wait() { l.under.Wait() }
