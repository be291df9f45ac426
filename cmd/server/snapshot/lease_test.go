package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"
)

func memory() *Bucket { return NewBucket(memblob.OpenBucket(nil), "mem://") }

func holderOptions(name string) LeaseOptions {
	return LeaseOptions{Holder: name, URL: "http://" + name}
}

// The next process waits for one that ended without a word, and not for one that released the lease.
func TestLeaseIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory()
		first, err := Acquire(t.Context(), b, holderOptions("a"))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		second, err := Acquire(t.Context(), b, holderOptions("b"))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < leaseTTL || took > 2*leaseTTL {
			t.Errorf("taken after %v", took)
		}
		if err := first.Valid(); !errors.Is(err, ErrExpired) {
			t.Errorf("the first: %v", err)
		}
		if err := first.Run(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("the first: %v", err)
		}
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if second.Term() <= first.Term() || second.Valid() != nil {
			t.Errorf("terms %d, %d: %v", first.Term(), second.Term(), second.Valid())
		}
		if err := second.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		start = time.Now()
		for _, holder := range []string{"c", "c"} { // once released, once its own
			if _, err = Acquire(t.Context(), b, holderOptions(holder)); err != nil || time.Since(start) > time.Millisecond {
				t.Errorf("taken after %v: %v", time.Since(start), err)
			}
		}
	})
}

// A lease that is renewed lasts, and its old objects are deleted.
func TestLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory()
		l, err := Acquire(t.Context(), b, holderOptions("a"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = l.Run(ctx) })
		for range 1800 {
			time.Sleep(time.Second)
			if err := l.Valid(); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		wg.Wait()
		all, err := b.list(t.Context(), leaseDir)
		if most := int(pruneAge/(leaseTTL/3)) + 3; err != nil || len(all) > most {
			t.Errorf("%d lease objects, want at most %d: %v", len(all), most, err)
		}
	})
}

// A renewal that was cut off, and took place nevertheless, does not stand in the way of a release. A release that
// seemed to fail counts, too.
func TestLeaseReleasedAfterUnknownRenewal(t *testing.T) {
	for _, released := range []bool{false, true} {
		b := memory()
		l, err := Acquire(t.Context(), b, holderOptions("a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.put(t.Context(), l.number+1, released); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("released before %v: %v", released, err)
		}
		want := int64(3)
		if released {
			want = 2
		}
		if n, r, err := newestLease(t.Context(), b); err != nil || !r.Released || n != want {
			t.Errorf("released before %v: the newest lease is %d, %+v, error %v, want %d", released, n, r, err, want)
		}
	}
}

// Where another process has taken the lease meanwhile, its object remains the newest.
func TestLeaseReleasedByAnother(t *testing.T) {
	b := memory()
	l, err := Acquire(t.Context(), b, holderOptions("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(t.Context(), b, holderOptions("a")); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if n, r, err := newestLease(t.Context(), b); err != nil || r.Released || n != 2 {
		t.Errorf("the newest lease is %d, %+v, error %v", n, r, err)
	}
}

// flaky is a source of delays and failures.
type flaky struct {
	random *rand.Rand
	mu     sync.Mutex
}

func (f *flaky) draw(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(n)
}

// delayed returns a time that is short mostly, and sometimes longer than a lease.
func (f *flaky) delayed() time.Duration {
	if f.draw(12) == 0 {
		return time.Duration(f.draw(40)) * time.Second
	}
	return time.Duration(f.draw(800)) * time.Millisecond
}

// process is a writer of the test: it holds the lease when it can, and appends to a log in the bucket.
func (f *flaky) process(t *testing.T, b *Bucket, name string, rate float64, acked func(term int64, entry string), done <-chan struct{}) {
	began := time.Now()
	o := holderOptions(name)
	o.Now = func() time.Time { return began.Add(time.Duration(float64(time.Since(began)) * rate)) }
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		default:
		}
		l, err := Acquire(t.Context(), b, o)
		if err != nil {
			time.Sleep(f.delayed())
			continue
		}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = l.Run(ctx) })
		for k := range f.draw(30) {
			time.Sleep(f.delayed()) // the process may be paused
			entry := fmt.Sprintf("log/%06d-%s-%d-%d", l.Term(), name, n, k)
			if b.create(t.Context(), entry, nil) != nil {
				continue
			}
			if l.Valid() == nil {
				acked(l.Term(), entry)
			}
		}
		if f.draw(2) == 0 {
			_ = l.Release(t.Context())
		}
		stop() // else it ends without a word
		wg.Wait()
		time.Sleep(f.delayed())
	}
}

// Whatever is delayed or paused, and with clocks that differ by a tenth: what a process acknowledges is in the bucket
// before the next process has the lease.
func TestLeaseHasOneHolder(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	total := 0
	for seed := range rounds {
		synctest.Test(t, func(t *testing.T) {
			f := &flaky{random: rand.New(rand.NewPCG(uint64(seed), 1))}
			objects := memblob.OpenBucket(nil)
			b := NewBucket(objects, "mem://")
			b.disturb = func() error {
				time.Sleep(f.delayed())
				if f.draw(20) == 0 {
					return errors.New("the network is down")
				}
				return nil
			}
			var mu sync.Mutex
			var newest int64
			acked := func(term int64, entry string) {
				mu.Lock()
				defer mu.Unlock()
				total++
				if term < newest {
					t.Errorf("seed %d: %s was acknowledged in term %d after term %d", seed, entry, term, newest)
				}
				newest = max(newest, term)
			}
			done := make(chan struct{})
			var wg sync.WaitGroup
			for i, name := range []string{"a", "b", "c"} {
				wg.Go(func() { f.process(t, b, name, 0.95+0.05*float64(i), acked, done) })
			}
			time.Sleep(20 * time.Minute)
			close(done)
			wg.Wait()
		})
	}
	if total < 20*rounds {
		t.Errorf("%d acknowledged: the test does nothing", total)
	}
}

// Of many that create the same file of a shared directory at the same time, one succeeds.
func TestFilesAreCreatedOnce(t *testing.T) {
	b, err := OpenBucket(t.Context(), "file://"+filepath.Join(t.TempDir(), "shared"))
	if err != nil {
		t.Fatal(err)
	}
	testCreatedOnce(t, b)
}

func testCreatedOnce(t *testing.T, b *Bucket) {
	t.Helper()
	for round := range 20 {
		name := fmt.Sprintf("lease/%012d", round+1)
		var mu sync.Mutex
		var wg sync.WaitGroup
		winner, won := "", 0
		for i := range 16 {
			wg.Go(func() {
				text := fmt.Sprint("of ", i)
				err := b.create(t.Context(), name, []byte(text))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					winner, won = text, won+1
				} else if !errors.Is(err, errExists) {
					t.Logf("%s: %v", name, err) // a store may refuse those that collide
				}
			})
		}
		wg.Wait()
		content, err := b.read(t.Context(), name)
		if err != nil || won != 1 || string(content) != winner {
			t.Fatalf("%s: %d succeeded, the last is %q, the content is %q: %v", name, won, winner, content, err)
		}
		if err := b.create(t.Context(), name, nil); !errors.Is(err, errExists) {
			t.Fatalf("again: %v", err)
		}
	}
}
