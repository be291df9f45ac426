package profiler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Resumer is an optional interface of Runners with measurements that survive this process, such as jobs of a cluster.
type Resumer interface {
	// UnderWay returns those of the configurations with a measurement that an earlier process began, running or ended.
	// Run continues it. Whatever else earlier processes left is removed.
	UnderWay(ctx context.Context, open []spec.Config) ([]spec.Config, error)
}

// onCluster reports whether points are measured elsewhere: several at a time, or by jobs that outlive this process.
func (r *run) onCluster() bool {
	_, resumes := r.o.Runner.(Resumer)
	return resumes || r.o.Parallel > 1
}

// A measuredPoint is the result of a point of a concurrent session.
type measuredPoint struct {
	number int
	m      spec.Measurement
	err    error
}

// concurrent measures up to Options.Parallel points at a time, as session does one. Each is chosen as if the points under
// way had been measured as predicted.
func (r *run) concurrent(outer context.Context) (State, error) {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	running, results := map[int]Step{}, make(chan measuredPoint)
	last := r.number
	begin := func(step Step) {
		last++
		number := last
		running[number] = step
		r.report(Event{Next: &step})
		go func() {
			m, err := r.o.Runner.Run(ctx, step.Point.Config)
			results <- measuredPoint{number, m, err}
		}()
	}
	steps, failure := r.underWay(ctx)
	for _, s := range steps {
		begin(s)
	}
	for {
		for failure == nil && len(running) < max(r.o.Parallel, 1) {
			step, ok, err := r.nextBeside(ctx, running)
			if failure = err; err != nil || !ok {
				break
			}
			begin(step)
		}
		if failure != nil {
			cancel()
		}
		if len(running) == 0 {
			break
		}
		done := <-results
		step := running[done.number]
		delete(running, done.number)
		if err := r.finishPoint(ctx, step, done); err != nil && failure == nil {
			failure = err
		}
	}
	if failure != nil {
		return r.stop(outer, failure)
	}
	return r.state(), nil
}

// finishPoint stores the result of a point and refits.
func (r *run) finishPoint(ctx context.Context, step Step, done measuredPoint) error {
	if done.err != nil {
		return r.pointError(done.number, step.Point.Config, done.err)
	}
	m, err := r.store(ctx, step, done.m, done.number, HeldSec(done.m))
	if err != nil {
		return err
	}
	r.add(m)
	if err := r.refit(ctx); err != nil {
		return err
	}
	r.report(Event{Last: &m})
	return r.checkEarlyFailures()
}

// underWay returns the points that an earlier session began.
func (r *run) underWay(ctx context.Context) (steps []Step, err error) {
	resumer, ok := r.o.Runner.(Resumer)
	if !ok {
		return nil, nil
	}
	var open []spec.Config
	for i, p := range r.points {
		if r.open(i) {
			open = append(open, p.Config)
		}
	}
	configs, err := resumer.UnderWay(ctx, open)
	if err != nil {
		return nil, fmt.Errorf("profiler: campaign %s, run %s: points under way: %w", r.c.Name, r.label, err)
	}
	for _, c := range configs {
		i := r.index[r.identity(c)]
		k := r.byKey[r.points[i].Config.Key()]
		steps = append(steps, r.step(candidate{keyState: k, point: i, sec: r.seconds(k, i, r.costModel())}, "under way when the session before ended"))
	}
	return steps, nil
}

// nextBeside chooses the next point while others are under way. ok is false if none is to begin now; r.stopped is then set
// if none is under way either.
func (r *run) nextBeside(ctx context.Context, running map[int]Step) (step Step, ok bool, err error) {
	if len(running) == 0 {
		return r.next(ctx)
	}
	o := r.o
	o.Rows = slices.Concat(r.o.Rows, r.rows[r.resumed:])
	if r.o.Again {
		o.Rows, o.Again = r.rows[r.resumed:], false
	}
	fork, err := newRun(ctx, r.c, o)
	if err != nil {
		return Step{}, false, err
	}
	fork.began, fork.resumed = r.began, r.resumed
	for _, number := range slices.Sorted(maps.Keys(running)) {
		fork.add(fork.asPredicted(running[number]))
	}
	if err := fork.refit(ctx); err != nil {
		return Step{}, false, err
	}
	return fork.next(ctx)
}
