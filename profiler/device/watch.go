package device

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// defaultPeriod is the time between two samples.
	defaultPeriod = 100 * time.Millisecond
	// slowPeriod is the time between two looks at what changes slowly or costs
	// much to ask for.
	slowPeriod = time.Second
	// patience is how long the end of a recording waits for a driver that hangs.
	patience = 5 * time.Second
	// costBound is the share of a core that watching may take. Where the driver
	// is slow to answer, or the machine so large that counting its processors
	// takes long, samples are taken less often; more is mentioned.
	costBound = 0.01
)

// Watched is what was seen of devices. Its fields are those of runner.Watched.
type Watched struct {
	Env          map[string]string // for Measurement.Env
	EnergyJoules float64           // of all devices together in the timed part, 0 = not known
	AvgWatts     float64           // mean power of all devices together, 0 = not known
	Doubt        string            // why the step times are not what the configuration takes
}

// WatchOptions say how devices are watched.
type WatchOptions struct {
	CPU     bool          // the devices are cores of the CPU, else they are GPUs
	Threads int           // cores per device of the CPU, 0 = 1
	Period  time.Duration // between samples, 0 = 0.1 s; shorter than 10 ms counts as that; see costBound
}

// A Watcher samples devices while points are measured, in the background. It is
// safe for concurrent use.
type Watcher struct {
	period time.Duration
	eye    eye
	active atomic.Int64 // recordings that have not ended
}

// An eye is a way to look at one kind of device.
type eye interface {
	// open begins to look at devices. An error says why that cannot be done.
	open(devices []int, pgid func() int) (probe, error)
	close()
}

// A probe looks at some devices. sample and close come from one goroutine,
// judge may come from another at the same time.
type probe interface {
	// sample looks once; with slow set, also at what is looked at seldom.
	sample(now time.Time, slow bool)
	// judge says what was seen from one time to another, both zero = at any.
	judge(from, to time.Time) Watched
	close()
}

// NewWatcher returns a Watcher. Nothing is opened before Watch.
func NewWatcher(o WatchOptions) *Watcher {
	w := &Watcher{period: o.Period}
	switch {
	case w.period <= 0:
		w.period = defaultPeriod
	case w.period < 10*time.Millisecond:
		w.period = 10 * time.Millisecond
	}
	if o.CPU {
		w.eye = cpuEye{root: "/", threads: max(o.Threads, 1)}
	} else {
		w.eye = newGPUEye()
	}
	return w
}

// Close lets go of the driver, unless a Watch is under way or hangs in it. A
// later Watch opens it again.
func (w *Watcher) Close() {
	if w.active.Load() == 0 {
		w.eye.close()
	}
}

// Watch starts to look at devices, by index, and returns at once. pgid returns
// the process group that is measured, 0 before it runs: it, what it started, and
// everything else this process started, are expected to use the devices, and
// nobody else. stop ends the looking and returns what was seen from one time to
// another, or of all the time if both are zero; it may be called again.
//
// Watching never fails a measurement: what cannot be seen is absent, and a
// warning says so.
func (w *Watcher) Watch(devices []int, pgid func() int) (stop func(from, to time.Time) Watched) {
	if pgid == nil {
		pgid = func() int { return 0 }
	}
	r := &recording{period: w.period, begun: time.Now(), end: make(chan struct{}), ended: make(chan struct{})}
	w.active.Add(1)
	go func() {
		defer close(r.ended)
		defer w.active.Add(-1)
		r.run(w.eye, slices.Clone(devices), pgid)
	}()
	var once sync.Once
	return func(from, to time.Time) Watched {
		once.Do(func() { close(r.end) })
		return r.tell(from, to)
	}
}

// A recording is the looking at devices during one point.
type recording struct {
	period     time.Duration
	begun      time.Time
	end, ended chan struct{}

	mu    sync.Mutex // of what follows
	probe probe      // nil until it is open
	err   error      // why it is not
	spent float64    // processor seconds of sampling
	done  time.Time  // of the last sample

	samples int // of run alone
}

// run samples until the end, and once more then.
func (r *recording) run(e eye, devices []int, pgid func() int) {
	p, err := e.open(devices, pgid)
	r.mu.Lock()
	r.probe, r.err = p, err
	r.mu.Unlock()
	if err != nil {
		return
	}
	defer p.close()
	ticker := time.NewTicker(r.period)
	defer ticker.Stop()
	period, slowAt, cost := r.period, time.Time{}, time.Duration(0)
	for {
		now := time.Now()
		// Half a period early, lest a tick that comes soon puts it off by one.
		slow := now.Sub(slowAt) >= slowPeriod-period/2
		if slow {
			// The first look costs more than those that follow: it is left out.
			if share := cost.Seconds() / now.Sub(slowAt).Seconds(); share > costBound && period < slowPeriod {
				period = min(2*period, slowPeriod)
				ticker.Reset(period)
			}
			slowAt, cost = now, 0
		}
		once := r.sample(p, now, slow)
		if r.samples > 1 {
			cost += once
		}
		select {
		case <-ticker.C:
		case <-r.end:
			r.sample(p, time.Now(), true)
			return
		}
	}
}

// sample samples once and returns the processor time that took.
func (r *recording) sample(p probe, now time.Time, slow bool) time.Duration {
	cost := processorTime(func() { p.sample(now, slow) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent += cost.Seconds()
	r.samples++
	r.done = now
	return cost
}

// tell waits for the last sample and returns what was seen.
func (r *recording) tell(from, to time.Time) Watched {
	hangs := false
	select {
	case <-r.ended:
	case <-time.After(patience):
		hangs = true
	}
	r.mu.Lock()
	p, err, share := r.probe, r.err, r.spent/max(r.done.Sub(r.begun).Seconds(), r.period.Seconds())
	r.mu.Unlock()
	switch {
	case p == nil && err == nil:
		return unwatched("the driver does not answer")
	case p == nil:
		return unwatched(err.Error())
	}
	w := p.judge(from, to)
	if hangs {
		w.warn("the driver stopped answering; what was seen before counts")
	}
	if share > costBound {
		w.warn(fmt.Sprintf("watching took %.1f %% of a core", 100*share))
	}
	return w
}
