package profiler

import (
	"context"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// gpuMachine is cpuMachine with devices that are not its CPUs.
func gpuMachine(n, cpus int) Machine {
	m := cpuMachine(n)
	m.CPU, m.CPUs = false, cpus
	return m
}

// TestOtherCPUs: a node that gives a process fewer CPUs than before repeats
// nothing, unless the campaign says how many there are to be.
func TestOtherCPUs(t *testing.T) {
	for _, tc := range []struct{ threads, more int }{{0, 0}, {4, 36}} {
		var sink memorySink
		o, l := options(t, &sink)
		o.Machine = gpuMachine(2, 16)
		c := smallCampaign(Adaptive)
		if _, err := Run(context.Background(), c, o); err != nil {
			t.Fatal(err)
		}
		o.Rows, o.Machine.CPUs = slices.Clone(sink.rows), 12
		c.Point.Threads = tc.threads
		s, err := Run(context.Background(), c, o)
		if err != nil || l.runs != 36+tc.more || s.Models[0].Done != 18 {
			t.Errorf("threads %d: %d points run, %d of a done, %v; want %d, 18", tc.threads, l.runs, s.Models[0].Done, err, 36+tc.more)
		}
	}
}

// TestCrowdedOutOfMemory rules nothing out: it was somebody else's memory.
func TestCrowdedOutOfMemory(t *testing.T) {
	for shared, skipped := range map[string]int{"": 2, "pid 7 holds 60 GiB": 0} {
		var sink memorySink
		o, _ := options(t, &sink)
		o.Runner = crowdedOnce{o.Runner, shared}
		c := Campaign{Name: "c", Choose: Grid, Models: []spec.Model{tinyModel("a", 4)}, Space: Space{MicroBatch: []int{1, 2, 4}}}
		s, err := Run(context.Background(), c, o)
		if err != nil || s.ByOutcome[spec.OOM] != 1 || s.Skipped != skipped || s.Done != 3-skipped {
			t.Errorf("shared %q: %v, %d skipped, %v; want 1 out of memory, %d skipped", shared, s.ByOutcome, s.Skipped, err, skipped)
		}
	}
	var b belief
	b.add(spec.Measurement{Outcome: spec.OOM, Env: map[string]string{EnvShared: "pid 7"}})
	b.add(spec.Measurement{Outcome: spec.OOM})
	if b.misses != 1 {
		t.Errorf("%d misses, want that of the device that was not shared", b.misses)
	}
}

// crowdedOnce runs out of memory at micro-batch 1.
type crowdedOnce struct {
	Runner
	shared string
}

func (r crowdedOnce) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	m, err := r.Runner.Run(ctx, c)
	if c.Plan.MicroBatch == 1 {
		m.Outcome, m.Reason, m.StepSec, m.Env[EnvShared] = spec.OOM, "out of memory", nil, r.shared
	}
	return m, err
}
