package server

import (
	"context"
	"sync"
	"time"
)

// limiter bounds concurrent requests and searches.
type limiter struct {
	requests, searches chan struct{}
	under              *sync.WaitGroup
}

func newLimiter(requests, searches int) limiter {
	return limiter{make(chan struct{}, requests), make(chan struct{}, searches), new(sync.WaitGroup)}
}

// queueing is how long a search waits for a free slot before it is refused.
const queueing = time.Second

// retryAfter is the Retry-After of refused requests, seconds.
const retryAfter = "1"

// enter takes a slot for a request; false = none is free.
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

// pass admits a request without a slot.
func (l *limiter) pass() { l.under.Add(1) }

func (l *limiter) passed() { l.under.Done() }

// search takes a slot for a search, waiting up to queueing for it.
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

// wait returns when no request is running. None may enter meanwhile.
func (l *limiter) wait() { l.under.Wait() }
