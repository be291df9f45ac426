package campaign

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
	"github.com/pacer-ml/pacer/profiler/runner"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// torchSetup trains on this machine. Dry, it does without Python: what the
// installed torch lacks is then not known.
func (o *Options) torchSetup(ctx context.Context, camp profiler.Campaign) (Setup, error) {
	m, watch, notes, err := o.thisMachine(ctx, camp)
	if err != nil {
		return Setup{}, err
	}
	m.Framework, m.Nodes = spec.FrameworkWorker, o.team.Nodes()
	again, stop := interruptedAgain()
	s := Setup{Machine: m, Notes: notes, close: func() { stop(); watch.Close() }}
	t, err := runner.NewTorchrun(runner.TorchrunOptions{
		Point: camp.Point, Machine: m, Seed: o.Seed, Watch: deviceWatch{watch}, Executor: executor.Local{Hurry: again}, Team: o.team})
	if err != nil {
		return s, err
	}
	s.Runner = t
	ready, err := o.clear(ctx, &s, watch)
	if err != nil {
		return s, err
	}
	torch, err := t.Setup(ctx)
	ready()
	if err == nil {
		err = seesDevices(torch, m)
	}
	if err == nil && m.CPU && o.Devices != cpuDevices {
		var hidden int
		hidden, err = t.Hidden(ctx)
		err = cmp.Or(err, unseenGPUs(torch, hidden, notes))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return s, ctx.Err()
	case err != nil && o.Dry:
		s.Machine.Lacks = lacksIn(assumedTorch(), m, camp)
		s.Notes = append(s.Notes, fmt.Sprintf("planned as if PyTorch had everything: %v", err))
		return s, nil
	case err != nil:
		return s, err
	}
	s.Machine.Env[profiler.EnvTorch], s.Machine.Env[profiler.EnvPython] = torch.Torch, torch.Python
	s.Machine.Lacks = lacksIn(torch, m, camp)
	return s, nil
}

// lacksIn returns Machine.Lacks of m with a torch.
func lacksIn(torch worker.Features, m profiler.Machine, camp profiler.Campaign) func(spec.Config) string {
	device := worker.CUDA
	if m.CPU {
		device = worker.CPU
	}
	return func(x spec.Config) string { return torch.Lacks(x, device, camp.Point.Compile) }
}

// assumedTorch has every feature the worker asks for: what it still lacks, no
// torch can give it.
func assumedTorch() worker.Features {
	f := worker.Features{Torch: "(any)", Features: map[string]any{}}
	for _, name := range []string{"zero_redundancy_optimizer", "fsdp1", "fsdp2", "compile", "bf16", "fp16", "tf32"} {
		f.Features[name] = true
	}
	return f
}

// seesDevices reports a torch that cannot use all the devices there are: points
// would fail for want of them.
func seesDevices(torch worker.Features, m profiler.Machine) error {
	switch {
	case m.CPU || torch.Devices >= len(m.Devices):
		return nil
	case torch.Devices > 0:
		return fmt.Errorf("profile: torch %s of %s sees %d of the GPUs %v; choose those it can use (--devices): %w",
			torch.Torch, torch.Executable, torch.Devices, m.Devices, profiler.ErrSetup)
	}
	how := "was built without CUDA"
	if torch.CUDA != "" {
		how = "is built for CUDA " + torch.CUDA + " but sees no device: does the driver support it?"
	}
	return fmt.Errorf("profile: this machine has %d x %s, but torch %s of %s %s; install one with CUDA (pip install torch), or measure the CPU (--devices cpu): %w",
		len(m.Devices), m.Accelerator.Name, torch.Torch, torch.Executable, how, profiler.ErrSetup)
}

// unseenGPUs reports GPUs that torch can use and the NVIDIA management library
// does not show, so that the CPU would be measured in their place. notes say
// what became of that library.
func unseenGPUs(torch worker.Features, devices int, notes []string) error {
	if devices == 0 {
		return nil
	}
	return fmt.Errorf("profile: torch %s of %s sees %s, but they cannot be watched (%s): in a container give it the driver's "+
		"\"utility\" capability (NVIDIA_DRIVER_CAPABILITIES=compute,utility), use a pacer built with cgo (gcc), "+
		"or measure the CPU (--devices cpu): %w",
		torch.Torch, torch.Executable, spec.Count(devices, "CUDA device"), cmp.Or(strings.Join(notes, "; "), "the NVIDIA management library shows none"),
		profiler.ErrSetup)
}
