package server

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/cmd/server/limits"
	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// limiter bounds the requests that are worked on at the same time. A request takes
// its place after its body has arrived and leaves it before its answer is written.
type limiter struct {
	requests chan struct{}
	// short and long have seats of their own, so that long searches never delay
	// short ones. Fits have one seat, since they run one at a time.
	short, long, fits *limits.FairQueue
	under             *sync.WaitGroup // handlers
}

func newLimiter(o *Options) limiter {
	queue := func(seats int, patience time.Duration) *limits.FairQueue {
		return &limits.FairQueue{Seats: seats, Patience: patience}
	}
	wait := o.Timeout / 4
	return limiter{make(chan struct{}, o.MaxRequests), queue(o.MaxSearches, wait), queue(max(o.MaxSearches/2, 1), wait), queue(1, o.FitTimeout), new(sync.WaitGroup)}
}

// enter takes a place for a request; false = none is free.
func (l *limiter) enter() bool {
	select {
	case l.requests <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *limiter) leave() { <-l.requests }

// wait returns when no handler runs. None may start meanwhile.
func (l *limiter) wait() { l.under.Wait() }

// queue returns where a request of a weight and an estimated cost waits, nil = it
// does not wait.
func (l *limiter) queue(w weight, cost float64) *limits.FairQueue {
	switch {
	case w == fit:
		return l.fits
	case w == search && cost > shortSearch:
		return l.long
	case w == search:
		return l.short
	}
	return nil
}

// admitted runs handle in a place of the limiter. Where there is none, it returns a
// problem with status 429.
func admitted[O any](ctx context.Context, s *Server, w weight, cost float64, handle func() (O, error)) (out O, err error) {
	q := s.limit.queue(w, cost)
	if q == nil {
		if !s.limit.enter() {
			return out, s.busy("requests", time.Second, fmt.Sprintf("%d requests are running", s.o.MaxRequests))
		}
		defer s.limit.leave()
		return handle()
	}
	queued := time.Now()
	_, span := s.trace.span(ctx, "queue")
	release, err := q.Acquire(ctx, requestOf(ctx).flow(), cost)
	endSpan(span, err)
	start := time.Now()
	s.metrics.queued.Observe(start.Sub(queued).Seconds())
	if err == limits.ErrBusy { //nolint:errorlint // never wrapped
		return out, s.busy("searches", q.Delay(), "the searches before this one take too long")
	}
	if err != nil {
		return out, err
	}
	defer func() { release(time.Since(start)) }()
	return handle()
}

// busy counts a refused request and returns its problem.
func (s *Server) busy(what string, wait time.Duration, why string) *problem.Problem {
	s.metrics.refused.WithLabelValues(what).Inc()
	after := int(math.Ceil(min(max(wait.Seconds(), 1), 30)))
	p := problem.New(http.StatusTooManyRequests, problem.TypeOverloaded, fmt.Sprintf("%s: retry in %d s", why, after))
	p.RetryAfter = strconv.Itoa(after)
	return p
}

// overloaded refuses a request.
func (s *Server) overloaded(w http.ResponseWriter, what string, wait time.Duration, why string) {
	problem.Write(w, s.busy(what, wait, why))
}
