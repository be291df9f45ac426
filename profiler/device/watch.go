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
	// slowPeriod is the time between two reads of values that change slowly or are expensive to read.
	slowPeriod = time.Second
	// hangTimeout is the time that the end of a recording waits for a hanging driver.
	hangTimeout = 5 * time.Second
	// costBound is the largest share of a core that watching may take. If the driver is slow, or the machine
	// has very many processors, the sampling rate is reduced; if the share is still larger, it is reported.
	costBound = 0.01
)

// Watched holds the observations of the devices. It has the fields of runner.Watched.
type Watched struct {
	Env          map[string]string // for Measurement.Env
	EnergyJoules float64           // of all devices together in the timed part, 0 = unknown
	AvgWatts     float64           // mean power of all devices together, 0 = unknown
	Doubt        string            // why the step times may not be those of the configuration
}

// WatchOptions configure a Watcher.
type WatchOptions struct {
	CPU     bool          // the devices are cores of the CPU; otherwise GPUs
	Threads int           // cores per device of the CPU, 0 = 1
	Period  time.Duration // time between samples, 0 = 0.1 s, at least 10 ms; see costBound
}

// A Watcher samples devices in the background while points are measured. It is safe for concurrent use.
type Watcher struct {
	period  time.Duration
	monitor monitor
	active  atomic.Int64 // recordings that have not ended
}

// A monitor opens probes for one kind of device.
type monitor interface {
	// open starts to observe devices. The error says why it cannot.
	open(devices []int, pgid func() int) (probe, error)
	close()
}

// A probe samples some devices. One goroutine calls sample and close; another one may call judge at the same
// time.
type probe interface {
	// sample takes one sample; if slow is set, including the values that are read less often.
	sample(now time.Time, slow bool)
	// judge summarises the samples from one time to another, or all of them if both are zero.
	judge(from, to time.Time) Watched
	close()
}

// NewWatcher returns a Watcher. It opens no device before Watch.
func NewWatcher(o WatchOptions) *Watcher {
	w := &Watcher{period: o.Period}
	switch {
	case w.period <= 0:
		w.period = defaultPeriod
	case w.period < 10*time.Millisecond:
		w.period = 10 * time.Millisecond
	}
	if o.CPU {
		w.monitor = cpuMonitor{root: "/", threads: max(o.Threads, 1)}
	} else {
		w.monitor = newGPUMonitor()
	}
	return w
}

// Close releases the driver, unless a Watch is active or hangs in it. A later Watch opens it again.
func (w *Watcher) Close() {
	if w.active.Load() == 0 {
		w.monitor.close()
	}
}

// Watch starts to observe devices, by index, and returns at once. pgid returns the process group that is being
// measured, 0 before it runs. That group, its descendants and the descendants of this process may use the
// devices; any other process counts as interference.
//
// stop ends the recording and returns the observations from one time to another, or over all time if both are
// zero. It may be called again. The Watched belongs to the caller.
//
// Watching never fails a measurement: values that cannot be read are absent, and a warning says so.
func (w *Watcher) Watch(devices []int, pgid func() int) (stop func(from, to time.Time) Watched) {
	if pgid == nil {
		pgid = func() int { return 0 }
	}
	r := &recording{period: w.period, begun: time.Now(), end: make(chan struct{}), ended: make(chan struct{})}
	w.active.Add(1)
	go func() {
		defer close(r.ended)
		defer w.active.Add(-1)
		r.run(w.monitor, slices.Clone(devices), pgid)
	}()
	var once sync.Once
	return func(from, to time.Time) Watched {
		once.Do(func() { close(r.end) })
		return r.result(from, to)
	}
}

// A recording observes devices during one point.
type recording struct {
	period     time.Duration
	begun      time.Time
	end, ended chan struct{}

	mu    sync.Mutex // guards the fields below
	probe probe      // nil until it is open
	err   error      // why probe cannot be opened
	spent float64    // processor seconds of sampling
	done  time.Time  // time of the last sample

	samples int // only used by run
}

// run takes samples until the end, and a final one then.
func (r *recording) run(e monitor, devices []int, pgid func() int) {
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
		// Half a period early, so that an early tick does not delay the slow read by one period.
		slow := now.Sub(slowAt) >= slowPeriod-period/2
		if slow {
			// The first sample costs more than later ones, so it is not counted.
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

// sample takes one sample and returns the processor time it took.
func (r *recording) sample(p probe, now time.Time, slow bool) time.Duration {
	cost := processorTime(func() { p.sample(now, slow) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent += cost.Seconds()
	r.samples++
	r.done = now
	return cost
}

// result waits for the last sample and returns the observations.
func (r *recording) result(from, to time.Time) Watched {
	hangs := false
	select {
	case <-r.ended:
	case <-time.After(hangTimeout):
		hangs = true
	}
	r.mu.Lock()
	p, err, share := r.probe, r.err, r.spent/max(r.done.Sub(r.begun).Seconds(), r.period.Seconds())
	r.mu.Unlock()
	switch {
	case p == nil && err == nil:
		return unwatched("the driver does not respond")
	case p == nil:
		return unwatched(err.Error())
	}
	w := p.judge(from, to)
	if hangs {
		w.warn("the driver stopped responding; the observations until then count")
	}
	if share > costBound {
		w.warn(fmt.Sprintf("watching took %.1f %% of a core", 100*share))
	}
	return w
}
