package snapshot

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// TestExpiredWhilePut: what is put is not acknowledged if the lease ends before the object store has confirmed it.
func TestExpiredWhilePut(t *testing.T) {
	b, s := memory(), newSite(t, t.TempDir())
	var later atomic.Int64 // than now
	now := time.Now()
	w, err := NewWriter(t.Context(), b, s.dir, s.db, s.open, s.models, WriterOptions{Now: func() time.Time { return now.Add(time.Duration(later.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, row(1))
	b.disturb = func() error { later.Store(int64(leaseTTL)); return nil }
	if err := w.Sync(t.Context()); !errors.Is(err, ErrExpired) {
		t.Errorf("%v, want that the lease has expired", err)
	}
	b.disturb = nil
	if put, _ := w.Counts(); put != 2 { // the full snapshot and this
		t.Errorf("%d objects put, want 2: the lease was not checked after the put", put)
	}
}

// TestFailedPut: what could not be put is put later, models too.
func TestFailedPut(t *testing.T) {
	b, s := memory(), newSite(t, t.TempDir())
	w := s.write(t, b)
	s.put(t, row(1))
	w.Fitted()
	b.disturb = func() error { return errors.New("the network is down") }
	if err := w.Sync(t.Context()); err == nil {
		t.Error("acknowledged without an object store")
	}
	if !w.pending.Load() || !w.newModels.Load() {
		t.Error("what was not put is forgotten")
	}
	b.disturb = nil
	acknowledge(t, w)
	if w.pending.Load() || w.newModels.Load() {
		t.Error("what was put is still to be put")
	}
}
