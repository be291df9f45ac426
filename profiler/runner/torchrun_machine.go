package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/tempdir"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// collectiveShare is the share of the time of micro-benchmarks for collectives.
const collectiveShare = 0.2

// Microbenchmarks measures the parts of a training step on the first device, and collectives of the first two if there are
// more, for about that time in addition to the start of PyTorch. The result is valid. The error wraps profiler.ErrSetup
// without a working PyTorch, and says why the worker failed.
func (t *Torchrun) Microbenchmarks(ctx context.Context, d time.Duration) (spec.Microbenchmarks, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.setup(ctx); err != nil {
		return spec.Microbenchmarks{}, err
	}
	m := t.o.Machine
	out := spec.Microbenchmarks{Accelerator: m.Accelerator, Link: m.Link, Framework: m.Framework, At: time.Now().UTC().Truncate(time.Second), Env: map[string]string{}}
	out.Accelerator.Measured = ""
	maps.Copy(out.Env, m.Env)
	alone, together := d, time.Duration(0)
	if len(m.Devices) > 1 {
		together = time.Duration(collectiveShare * float64(d))
		alone -= together
	}
	for devices, d := range []time.Duration{alone, together} {
		if d == 0 {
			continue
		}
		r, err := t.microbenchmarks(ctx, devices+1, d)
		if err != nil {
			return out, err
		}
		out.Env[profiler.EnvTorch] = r.Torch
		out.Rows = append(out.Rows, r.Rows...)
	}
	return out, out.Validate()
}

func (t *Torchrun) microbenchmarks(ctx context.Context, devices int, d time.Duration) (r worker.MachineResult, err error) {
	dir, err := tempdir.New("", "pacer-machine-")
	if err != nil {
		return r, fmt.Errorf("runner: torchrun: %w", err)
	}
	defer dir.Remove()
	request, out := dir.Path("request.json"), dir.Path("result.json")
	c := spec.Config{Plan: spec.Plan{DP: devices}.Normal()}
	of := worker.MachineRequest{Device: worker.CUDA, Devices: devices, Threads: threads(t.point, c), Seconds: d.Seconds(), Timeout: t.point.Timeout.Seconds()}
	if t.o.Machine.CPU {
		of.Device = worker.CPU
	}
	if err := of.Write(request); err != nil {
		return r, fmt.Errorf("runner: torchrun: %w", err)
	}
	exit, err := t.launch(ctx, c, dir.Path(""), request, out, nil)
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case err != nil:
		return r, fmt.Errorf("runner: torchrun: %w", err)
	case exit.TimedOut:
		return r, fmt.Errorf("runner: torchrun: micro-benchmarks of %s did not end within %s", spec.Count(devices, "device"), t.point.Timeout)
	}
	r, err = worker.ReadMachineResult(out)
	if errors.Is(err, worker.ErrNoResult) {
		err = fmt.Errorf("%w: %s, last line %q", err, status(exit), lastLine(exit.Tail))
	}
	if err != nil {
		return r, fmt.Errorf("runner: torchrun: %w", err)
	}
	return r, nil
}
