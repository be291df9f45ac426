package limits

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// The queue that was served least has the next seat, whatever its flow sends.
func TestFairQueueSharesByTime(t *testing.T) {
	q := &FairQueue{Seats: 1, Patience: time.Minute}
	const busy, quiet = 1, 2
	leave, err := q.Acquire(t.Context(), 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	var order []uint64
	var mu sync.Mutex
	var wg sync.WaitGroup
	add := func(flow uint64) {
		before, _ := q.Length()
		wg.Go(func() {
			leave, err := q.Acquire(t.Context(), flow, 1)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, flow)
			mu.Unlock()
			leave(time.Second)
		})
		for n, _ := q.Length(); n == before; n, _ = q.Length() {
			time.Sleep(time.Millisecond)
		}
	}
	for range 100 {
		add(busy)
	}
	for range 3 {
		add(quiet)
	}
	leave(time.Second)
	wg.Wait()
	// The busy flow waits in up to 6 queues, the quiet one in others: after each round
	// over them the quiet one has had a turn.
	last := 0
	for i, flow := range order {
		if flow == quiet {
			last = i
		}
	}
	if last >= 4*handSize || len(order) != 103 {
		t.Errorf("the quiet flow's last turn is %d of %d", last, len(order))
	}
	if n, used := q.Length(); n != 0 || used != 0 {
		t.Errorf("%d wait, %d have seats", n, used)
	}
}

// A request leaves the queue with its context, at the end of its patience, and at once
// where the queue is full.
func TestFairQueueRefuses(t *testing.T) {
	q := &FairQueue{Seats: 1, Patience: time.Millisecond}
	leave, err := q.Acquire(t.Context(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Acquire(t.Context(), 1, 1); !errors.Is(err, ErrBusy) {
		t.Errorf("patience: %v", err)
	}
	q.Patience = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	refused := func() bool {
		dead, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := q.Acquire(dead, 1, 1)
		return errors.Is(err, ErrBusy)
	}
	for !refused() {
		wg.Go(func() { _, _ = q.Acquire(ctx, 1, 1) })
	}
	if q.Delay() < time.Minute {
		t.Errorf("a delay of %v", q.Delay())
	}
	cancel()
	wg.Wait()
	leave(time.Second)
	if n, used := q.Length(); n != 0 || used != 0 || q.work != 0 {
		t.Errorf("%d wait, %d have seats, %g s of work", n, used, q.work)
	}
}
