package server

import (
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"
)

// memoryBudget bounds the bytes of the bodies and answers of all requests.
type memoryBudget struct{ free *semaphore.Weighted }

func newMemoryBudget(bytes int64) memoryBudget { return memoryBudget{semaphore.NewWeighted(bytes)} }

// lease is the part of the budget that one request holds.
type lease struct {
	budget memoryBudget
	held   int64
}

// leaseOf returns the lease of the request that w answers.
func (b memoryBudget) leaseOf(w http.ResponseWriter) *lease {
	if r, ok := w.(*responseWriter); ok {
		return &r.memory
	}
	return &lease{budget: b}
}

// take adds n bytes; false = the budget is used up.
func (l *lease) take(n int) bool {
	if !l.budget.free.TryAcquire(int64(n)) {
		return false
	}
	l.held += int64(n)
	return true
}

// give gives n bytes back.
func (l *lease) give(n int64) {
	l.budget.free.Release(n)
	l.held -= n
}

// end gives all bytes back.
func (l *lease) end() {
	l.budget.free.Release(l.held)
	l.held = 0
}

// metered reads a body while the lease has memory for what it reads. More than most bytes are an error.
type metered struct {
	r          io.Reader
	lease      *lease
	most, read int64
}

// Read implements io.Reader.
func (m *metered) Read(b []byte) (int, error) {
	n, err := m.r.Read(b[:min(int64(len(b)), m.most-m.read+1)])
	if n > 0 && !m.lease.take(n) {
		return 0, errMemory
	}
	if m.read += int64(n); m.read > m.most {
		return 0, &http.MaxBytesError{Limit: m.most}
	}
	return n, err
}
