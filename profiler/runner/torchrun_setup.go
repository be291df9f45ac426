package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/tempdir"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// pythonVar is the environment variable with the interpreter to use.
const pythonVar = "PACER_PYTHON"

const (
	installPython = "install Python 3.9 or later: apt-get install -y --no-install-recommends python3"
	installTorch  = "install torch 1.13 or later: apt-get install -y --no-install-recommends python3-torch, " +
		"or pip install torch, or set " + pythonVar + " to a python3 that has it"
)

// setupTimeout limits one import of torch. The first import from a cold disk has taken 15 s.
const setupTimeout = 3 * time.Minute

// Setup finds an interpreter with torch and returns its features. It searches once; later calls and Run use the
// result. The error wraps profiler.ErrSetup and says what to install.
func (t *Torchrun) Setup(ctx context.Context) (worker.Features, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.setup(ctx)
}

func (t *Torchrun) setup(ctx context.Context) (worker.Features, error) {
	if t.features != nil {
		return *t.features, nil
	}
	var err error
	if t.program = t.o.Program; t.program == "" {
		if t.program, err = worker.Extract(""); err != nil {
			return worker.Features{}, fmt.Errorf("runner: torchrun: %w: %w", err, profiler.ErrSetup)
		}
	}
	candidates := pythons(t.o.Python)
	if len(candidates) == 0 {
		return worker.Features{}, fmt.Errorf("runner: torchrun: no python3 in /usr/bin or on PATH; %s, and %s: %w",
			installPython, installTorch, profiler.ErrSetup)
	}
	var why []string
	for _, python := range candidates {
		f, err := t.probe(ctx, python, environment(t.o.Machine, t.o.Machine.Devices, t.point.Threads, nil))
		if ctx.Err() != nil {
			return worker.Features{}, ctx.Err()
		}
		if err != nil {
			why = append(why, err.Error())
			continue
		}
		f.Executable = python
		fit := t.o.Machine.CPU || f.Devices > 0
		if fit || t.features == nil { // the first one that imports torch, unless another one sees the GPUs
			t.features = &f
		}
		if fit {
			break
		}
	}
	if t.features != nil {
		return *t.features, nil
	}
	return worker.Features{}, fmt.Errorf("runner: torchrun: %s: %w", strings.Join(why, "; "), profiler.ErrSetup)
}

// Hidden returns the number of CUDA devices that torch sees but that a runner on the CPU hides from it, 0 for
// other runners. It finds the interpreter as Setup does.
func (t *Torchrun) Hidden(ctx context.Context) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, err := t.setup(ctx)
	if err != nil || !t.o.Machine.CPU || f.CUDA == "" {
		return 0, err
	}
	f, err = t.probe(ctx, f.Executable, nil)
	if err != nil {
		return 0, fmt.Errorf("runner: torchrun: %w", err)
	}
	return f.Devices, nil
}

// pythons returns the interpreters to try. The one on PATH comes first, since it belongs to an activated
// environment.
func pythons(chosen string) []string {
	if chosen == "" {
		chosen = os.Getenv(pythonVar)
	}
	if chosen != "" {
		return []string{chosen}
	}
	var out []string
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if path, err := exec.LookPath(name); err == nil && (len(out) == 0 || out[0] != path) {
			out = append(out, path)
		}
	}
	return out
}

// probe returns the features of an interpreter with env added to the environment, or an error that says what it
// lacks and how to install that.
func (t *Torchrun) probe(ctx context.Context, python string, env []string) (worker.Features, error) {
	var f worker.Features
	dir, err := tempdir.New("", "pacer-setup-")
	if err != nil {
		return f, err
	}
	defer dir.Remove()
	out := dir.Path("features.json")
	exit, err := t.o.Executor.Run(ctx, profiler.Command{
		Args: []string{python, t.program, "--features", "--out", out}, Env: env, Dir: dir.Path(""), Timeout: setupTimeout})
	switch {
	case errors.Is(err, profiler.ErrSetup):
		return f, fmt.Errorf("no Python at %s; %s", python, installPython)
	case err != nil:
		return f, err
	case exit.TimedOut:
		return f, fmt.Errorf("%s did not import torch within %s", python, setupTimeout)
	}
	f, err = worker.ReadFeatures(out)
	switch {
	case err != nil:
		return f, fmt.Errorf("%s is not a working Python (%s, last line %q); %s", python, status(exit), lastLine(exit.Tail), installPython)
	case f.Error != "":
		return f, fmt.Errorf("%s cannot import torch (%s); %s", python, f.Error, installTorch)
	case !f.Torchrun && len(t.o.Machine.Devices) > 1:
		return f, fmt.Errorf("%s has torch %s without torch.distributed.run, which several devices need; %s", python, f.Torch, installTorch)
	}
	return f, nil
}
