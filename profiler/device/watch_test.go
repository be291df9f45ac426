package device

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
)

// A fakeMonitor opens fakeProbes.
type fakeMonitor struct {
	err    error
	hang   chan struct{} // if set, samples after the first wait for it
	cost   time.Duration // processor time of a sample
	opened atomic.Int64
	closed atomic.Int64
}

type fakeProbe struct {
	monitor     *fakeMonitor
	mu          sync.Mutex
	fast, slow  int
	first, last time.Time
}

func (e *fakeMonitor) open([]int, func() int) (probe, error) {
	if e.err != nil {
		return nil, e.err
	}
	e.opened.Add(1)
	return &fakeProbe{monitor: e}, nil
}

func (e *fakeMonitor) close() {}

func (p *fakeProbe) sample(now time.Time, slow bool) {
	for begin := time.Now(); time.Since(begin) < p.monitor.cost; {
		continue
	}
	p.mu.Lock()
	if p.fast == 0 {
		p.first = now
	}
	p.fast++
	p.last = now
	if slow {
		p.slow++
	}
	first := p.fast == 1
	p.mu.Unlock()
	if p.monitor.hang != nil && !first {
		<-p.monitor.hang
	}
}

func (p *fakeProbe) judge(time.Time, time.Time) Watched {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Watched{Env: map[string]string{"fast": number(float64(p.fast)), "slow": number(float64(p.slow))}}
}

func (p *fakeProbe) close() { p.monitor.closed.Add(1) }

// TestWatchRhythm: a slow sample at the start, each second, and at the end; all goroutines end.
func TestWatchRhythm(t *testing.T) {
	before := runtime.NumGoroutine()
	spectest.Retry(t, func() error {
		e := &fakeMonitor{}
		w := &Watcher{period: 20 * time.Millisecond, monitor: e}
		stop := w.Watch([]int{0}, nil)
		time.Sleep(1500 * time.Millisecond)
		got := stop(time.Time{}, time.Time{})
		if e.opened.Load() != 1 || e.closed.Load() != 1 {
			t.Errorf("opened %d times, closed %d times", e.opened.Load(), e.closed.Load())
		}
		if slow, fast := got.Env["slow"], got.Env["fast"]; slow != "3" || len(fast) < 2 {
			return fmt.Errorf("%s slow looks in 1.5 s, want 3; %s looks in all, want at least 10", slow, fast)
		}
		return nil
	})
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestWatchThatCannotOpen(t *testing.T) {
	w := &Watcher{period: defaultPeriod, monitor: &fakeMonitor{err: errors.New("no eyes")}}
	got := w.Watch([]int{0}, nil)(time.Now(), time.Now())
	if got.Doubt != "" || got.Env[profiler.EnvWarning] != "devices were not watched: no eyes" {
		t.Errorf("got %+v", got)
	}
}

// TestHangingDriver: a driver that hangs does not block the measurement.
func TestHangingDriver(t *testing.T) {
	if testing.Short() {
		t.Skip("waits", hangTimeout)
	}
	e := &fakeMonitor{hang: make(chan struct{})}
	w := &Watcher{period: 10 * time.Millisecond, monitor: e}
	stop := w.Watch([]int{0}, nil)
	time.Sleep(50 * time.Millisecond)
	begin := time.Now()
	got := stop(time.Now(), time.Now())
	if d := time.Since(begin); d < hangTimeout || d > spectest.Patience(hangTimeout) {
		t.Errorf("waited %s", d)
	}
	if !strings.Contains(got.Env[profiler.EnvWarning], "stopped responding") {
		t.Errorf("got %+v", got)
	}
	w.Close() // must not touch the hanging driver
	close(e.hang)
	for range 5000 {
		if e.closed.Load() == 1 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the probe is not closed when the driver comes back")
}

func TestCostlyWatchingIsMentioned(t *testing.T) {
	spectest.Retry(t, func() error {
		w := &Watcher{period: 20 * time.Millisecond, monitor: &fakeMonitor{cost: 4 * time.Millisecond}}
		stop := w.Watch([]int{0}, nil)
		time.Sleep(300 * time.Millisecond)
		if got := stop(time.Now(), time.Now()); !strings.Contains(got.Env[profiler.EnvWarning], "% of a core") {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
}

// TestCostlySamplesAreRarer: expensive samples are taken less often.
func TestCostlySamplesAreRarer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 5 s")
	}
	for cost, want := range map[time.Duration][2]int{0: {50, 300}, 5 * time.Millisecond: {4, 190}} {
		spectest.Retry(t, func() error {
			e := &fakeMonitor{cost: cost}
			stop := (&Watcher{period: 10 * time.Millisecond, monitor: e}).Watch([]int{0}, nil)
			time.Sleep(2500 * time.Millisecond) // 250 samples at the full rate
			got := stop(time.Time{}, time.Time{})
			if n, err := strconv.Atoi(got.Env["fast"]); err != nil || n < want[0] || n > want[1] {
				// 100 in the first second, then 50, then 12 when they cost half a core
				return fmt.Errorf("samples of %s: %q of them, want %v", cost, got.Env["fast"], want)
			}
			return nil
		})
	}
}

// TestConcurrentWatches: many recordings at once, stopped by several goroutines, for the race detector.
func TestConcurrentWatches(t *testing.T) {
	w := NewWatcher(WatchOptions{CPU: true, Period: 10 * time.Millisecond})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			stop := w.Watch([]int{0}, nil)
			time.Sleep(100 * time.Millisecond)
			var inner sync.WaitGroup
			for range 3 {
				inner.Go(func() { stop(time.Now().Add(-50*time.Millisecond), time.Now()) })
			}
			inner.Wait()
		})
	}
	wg.Wait()
	w.Close()
}
