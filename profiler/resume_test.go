package profiler

import (
	"context"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// gpuMachine is cpuMachine with devices other than its CPUs.
func gpuMachine(n, cpus int) Machine {
	m := cpuMachine(n)
	m.CPU, m.CPUs = false, cpus
	return m
}

// TestOtherCPUs: if a node gives a process fewer CPUs than before, no point is repeated, unless the campaign
// sets the number of CPUs.
func TestOtherCPUs(t *testing.T) {
	for _, tc := range []struct{ threads, more int }{{0, 0}, {4, 36}} {
		var sink memorySink
		o, l := options(t, &sink)
		o.Machine = gpuMachine(2, 16)
		c := smallCampaign(Adaptive)
		mustRun(t, c, o)
		o.Rows, o.Machine.CPUs = slices.Clone(sink.rows), 12
		c.Point.Threads = tc.threads
		s, err := Run(context.Background(), c, o)
		if err != nil || l.runs != 36+tc.more || s.Models[0].Done != 18 {
			t.Errorf("threads %d: %d points run, %d of a done, %v; want %d, 18", tc.threads, l.runs, s.Models[0].Done, err, 36+tc.more)
		}
	}
}

// TestAgain: each session measures the points once more, and each measurement is a row of its own; a continued run
// without it measures nothing.
func TestAgain(t *testing.T) {
	var sink memorySink
	o, l := options(t, &sink)
	c := Campaign{Name: "c", Choose: Grid, Models: []spec.Model{tinyModel("a", 4)}, Space: Space{MicroBatch: []int{1, 2}}}
	for session := 1; session <= 3; session++ {
		o.Again, o.Rows = true, slices.Clone(sink.rows)
		s, err := Run(context.Background(), c, o)
		if err != nil || l.runs != 2*session || s.Done != 2*session || s.Stopped != "every point is measured" {
			t.Errorf("session %d: %d points run, %d done, %q, %v", session, l.runs, s.Done, s.Stopped, err)
		}
	}
	if got := numbersOf(sink.rows); !slices.Equal(got, []int{1, 2, 3, 4, 5, 6}) {
		t.Errorf("numbers %v", got)
	}
	o.Again, o.Rows = false, slices.Clone(sink.rows)
	if _, err := Run(context.Background(), c, o); err != nil || l.runs != 6 {
		t.Errorf("%d points run, %v, want 6", l.runs, err)
	}
}

// TestSharedOOM: an out of memory beside another process does not rule out other points.
func TestSharedOOM(t *testing.T) {
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
	var b keyState
	b.add(spec.Measurement{Outcome: spec.OOM, Env: map[string]string{EnvShared: "pid 7"}})
	b.add(spec.Measurement{Outcome: spec.OOM}.Quarantine("other driver"))
	b.add(spec.Measurement{Outcome: spec.OOM})
	if b.misses != 1 {
		t.Errorf("%d misses, want that of the device that was not shared", b.misses)
	}
}

// TestQuarantinedOOM: a continued run does not measure a quarantined point again, nor skip others because of it.
func TestQuarantinedOOM(t *testing.T) {
	var sink memorySink
	o, _ := options(t, &sink)
	o.Runner = crowdedOnce{o.Runner, ""}
	c := Campaign{Name: "c", Choose: Grid, Models: []spec.Model{tinyModel("a", 4)}, Space: Space{MicroBatch: []int{1, 2, 4}}}
	if s, err := Run(t.Context(), c, o); err != nil || s.Done != 1 || s.Skipped != 2 {
		t.Fatalf("%d done, %d skipped, %v; want 1, 2", s.Done, s.Skipped, err)
	}
	o.Rows = []spec.Measurement{sink.rows[0].Quarantine("other driver")}
	sink.rows = nil
	if s, err := Run(t.Context(), c, o); err != nil || s.Done != 3 || s.Skipped != 0 || len(sink.rows) != 2 {
		t.Errorf("%d done, %d skipped, %d measured, %v; want 3, 0, 2", s.Done, s.Skipped, len(sink.rows), err)
	}
}

// TestPointThatKills: a point at which consecutive sessions are killed fails, and the run continues. A session
// that ends without a crash resets the count.
func TestPointThatKills(t *testing.T) {
	for name, tc := range map[string]struct {
		interrupted int // index of the session that is interrupted at the point, 0 = none
		runner      string
		sessions    int // number of sessions that are killed
	}{"each": {0, "", 3}, "all but one": {2, "", 4}, "of a table": {0, RunnerReplay, 10}} {
		sink := journalSink{noted: map[string]noted{}}
		o, l := options(t, &sink.memorySink)
		o.Sink = &sink
		c := smallCampaign(Grid)
		c.Runner.Name, c.Budget.Points = tc.runner, 6
		died := 0
		for session := 1; session <= 10; session++ {
			o.Rows = slices.Clone(sink.rows)
			ctx, cancel := context.WithCancel(context.Background())
			k := &killer{Runner: l}
			if session == tc.interrupted {
				k.spare = cancel
			}
			o.Runner = k
			finish, err := survives(ctx, c, o)
			cancel()
			switch {
			case !finish:
				died++
			case err == nil:
				session = 10
			}
		}
		if died != tc.sessions {
			t.Errorf("%s: %d sessions died, want %d", name, died, tc.sessions)
		}
		if tc.runner != "" {
			continue
		}
		const why = "pacer or the machine went down while it was measured, 3 times in a row"
		if len(sink.rows) != 6 || sink.rows[3].Outcome != spec.Failed || sink.rows[3].Reason != why || sink.rows[4].Outcome != spec.OK {
			t.Errorf("%s: %d rows, %+v", name, len(sink.rows), sink.rows[min(3, len(sink.rows)-1)])
		}
		if len(sink.noted) != 0 {
			t.Errorf("%s: at the end there is %v", name, sink.noted)
		}
	}
}

// survives runs a session and reports whether it ended without a crash.
func survives(ctx context.Context, c Campaign, o Options) (finish bool, err error) {
	defer func() { finish = recover() == nil }()
	_, err = Run(ctx, c, o)
	return
}

// killer panics at the fourth point of the grid, which ends the session in these tests like a kill.
type killer struct {
	Runner
	spare func() // called instead, if set
}

func (k *killer) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	if c.Model.Name == "a" && c.Plan.String() == "dp=1,tp=1,pp=1,mb=2,ga=1,recompute=full,precision=fp32" {
		if k.spare == nil {
			panic("killed")
		}
		k.spare()
		return spec.Measurement{}, ctx.Err()
	}
	return k.Runner.Run(ctx, c)
}

// journalSink is a memorySink that also implements Journal.
type journalSink struct {
	memorySink
	noted map[string]noted
}

type noted struct {
	point string
	cross int
}

func (s *journalSink) Begin(run, point string) (int, error) {
	n := s.noted[run]
	if n.point != point {
		n = noted{point, 0}
	}
	s.noted[run] = noted{point, n.cross + 1}
	return n.cross, nil
}

func (s *journalSink) End(run string) error { delete(s.noted, run); return nil }

// crowdedOnce runs out of memory at micro-batch 1, once.
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
