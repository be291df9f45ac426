package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/tempdir"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// TorchrunOptions configure a Torchrun. Only Machine is required.
type TorchrunOptions struct {
	// Python is the interpreter with torch. "" = $PACER_PYTHON if set, else python3 on PATH or
	// /usr/bin/python3: the first one with a torch that can use the devices, or else the first one that imports
	// torch.
	Python   string
	Executor profiler.Executor     // nil = executor.Local
	Point    profiler.PointOptions // duration and precision of a point
	// Machine has the devices; a point uses the first ones of Devices. If CPU is set, devices are processes.
	Machine profiler.Machine
	Seed    uint64  // seed of weights and data
	Watch   Watcher // nil = none
	Team    *Team   // the nodes that measure each point together, nil = this one
	// Program is the directory of the worker, "" = the embedded worker, extracted.
	Program string
}

// Validate returns an error for the first invalid option.
func (o TorchrunOptions) Validate() error {
	p := o.Point.Defaults()
	switch {
	case len(o.Machine.Devices) == 0:
		return fmt.Errorf("runner: torchrun: the machine has no devices")
	case p.Timeout < 0 || p.MaxTime <= 0:
		return fmt.Errorf("runner: torchrun: timeout %s and time for steps %s must be positive", p.Timeout, p.MaxTime)
	case p.MinTime < 0 || p.MinTime > p.MaxTime:
		return fmt.Errorf("runner: torchrun: minimum time for steps %s is not in [0, %s]", p.MinTime, p.MaxTime)
	case p.MinSteps < 1 || p.MaxSteps < p.MinSteps:
		return fmt.Errorf("runner: torchrun: min_steps=%d and max_steps=%d, want 1 <= min_steps <= max_steps", p.MinSteps, p.MaxSteps)
	case !(p.Interval > 0 && p.Interval < 1):
		return fmt.Errorf("runner: torchrun: interval %g is not in (0, 1)", p.Interval)
	case p.Threads < 0:
		return fmt.Errorf("runner: torchrun: %d threads, want at least 0", p.Threads)
	}
	return nil
}

// Torchrun trains with PyTorch: one process per device, started by torchrun (torch.distributed.run) if there
// are several. It measures one point at a time; concurrent calls of Run wait for each other. Points of one accelerator,
// and ranks that run alone, are measured by one process, which stays until Close or the next point of another kind: it
// takes seconds to import torch and to open an accelerator.
type Torchrun struct {
	o     TorchrunOptions
	point profiler.PointOptions

	mu       sync.Mutex
	program  string           // directory of the worker, set by setup
	features *worker.Features // of the interpreter, set by setup
	server   *server          // nil = none runs
	serves   bool             // also points of one device that is not alone
}

var (
	_ profiler.Runner = (*Torchrun)(nil)
	_ io.Closer       = (*Torchrun)(nil)
)

// NewTorchrun returns a runner. The interpreter is searched by Setup or the first Run.
func NewTorchrun(o TorchrunOptions) (*Torchrun, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Executor == nil {
		o.Executor = executor.Local{}
	}
	if o.Watch == nil {
		o.Watch = noWatcher{}
	}
	p := o.Point.Defaults()
	if p.Threads == 0 && o.Machine.CPU {
		p.Threads = 1
	}
	if p.MinTime == 0 && !o.Machine.CPU {
		p.MinTime = min(time.Second, p.MaxTime/2)
	}
	return &Torchrun{o: o, point: p, serves: !o.Machine.CPU}, nil
}

// Run implements profiler.Runner.
func (t *Torchrun) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.setup(ctx); err != nil {
		return spec.Measurement{}, err
	}
	measure := t.measure
	if c.Alone() || t.serves && c.Plan.Devices() == 1 {
		measure = t.measureServed
	} else {
		t.closeServer() // it holds memory of the devices
	}
	return runHere(c, t.o.Machine, func(m *spec.Measurement) error { return measure(ctx, m) })
}

// measure runs the worker on the configuration of m and stores the results in m.
func (t *Torchrun) measure(ctx context.Context, m *spec.Measurement) error {
	dir, err := tempdir.New("", "pacer-point-")
	if err != nil {
		return fmt.Errorf("runner: torchrun: %w", err)
	}
	defer dir.Remove()
	request, out := dir.Path("request.json"), t.o.Team.path(dir.Path(""), "result.json")
	if err := t.request(m.Config).Write(request); err != nil {
		return fmt.Errorf("runner: torchrun: %w", err)
	}
	var pgid atomic.Int64
	stop := t.o.Watch.Watch(t.devices(m.Config), func() int { return int(pgid.Load()) })
	kills := oomKills()
	exit, err := t.launch(ctx, m.Config, dir.Path(""), request, out, func(id int) { pgid.Store(int64(id)) })
	end := workerExit{exit: exit, outOfMemoryKill: oomKills() > kills, timeout: t.point.Timeout, log: exit.Tail}
	if err == nil {
		end.result, end.noResult = worker.ReadResult(out)
	}
	watched := stop(end.result.Timed())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("runner: torchrun: %w", err)
	}
	all, silent, err := t.o.Team.report(ctx, nodeReport{end.exit, end.outOfMemoryKill, watched})
	if err != nil {
		return fmt.Errorf("runner: torchrun: %w", err)
	}
	end.exit, end.outOfMemoryKill, end.log = all.Exit, all.OutOfMemoryKill, all.Exit.Tail
	if errors.Is(end.noResult, worker.ErrNoResult) && strings.Contains(exit.Tail, "No space left on device") {
		return fmt.Errorf("runner: torchrun: no space left on the disk of %s: the worker could not write its result", dir.Path(""))
	}
	end.setOutcome(m)
	t.describe(m, end.result)
	addObserved(m, all.Watched)
	warnSilent(m, silent)
	return nil
}

// devices returns those of this node that a point uses.
func (t *Torchrun) devices(c spec.Config) []int {
	return t.o.Machine.Devices[:c.Plan.Devices()/t.o.Team.Nodes()]
}

func (t *Torchrun) request(c spec.Config) worker.Request {
	device := worker.CUDA
	if t.o.Machine.CPU {
		device = worker.CPU
	}
	return worker.Request{
		Config: c, Device: device, Devices: c.Plan.Devices(), Seed: t.o.Seed,
		Compile: t.point.Compile, Threads: threads(t.point, c),
		MinSteps: t.point.MinSteps, MaxSteps: t.point.MaxSteps,
		MinTime: t.point.MinTime.Seconds(),
		MaxTime: t.point.MaxTime.Seconds(), Interval: t.point.Interval, Timeout: t.point.Timeout.Seconds(),
	}
}
