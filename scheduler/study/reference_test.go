package study

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// failing is a policy that cannot run.
type failing struct{}

func (failing) Decide(context.Context, *scheduler.Snapshot) (scheduler.Decision, error) {
	return scheduler.Decision{}, errors.New("cannot run")
}

// lateRunner runs two jobs that each need the whole cluster: a, guaranteed, for 1000 s, and after 10 s b for 100 s. Under
// fifo and fifo-backfill a ends first; srtf stops it for b.
func lateRunner(t *testing.T, reference func(sim.Config) (sim.Config, bool)) *Runner {
	t.Helper()
	d, err := OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &Study{Name: "late", Workloads: []Workload{{Name: "w"}}, Seeds: []uint64{1, 2}, Schedulers: []Scheduler{{Name: "fifo"}, {Name: "srtf"}},
		Arrivals: Recorded, Confidence: 0.95, Baseline: "fifo"}
	cl := schedulertest.Nodes(1, 4)
	config := func(name string) (sim.Config, error) {
		p, err := builtin.Policies.New(policy.Spec{Name: name}, policy.Deps{})
		return sim.Config{Cluster: cl, Policy: p, PolicyName: name, Truth: sim.Durations{}, Jobs: []spec.Job{
			{ID: "a", Devices: 4, Duration: 1000 * time.Second, Guaranteed: true}, {ID: "b", Submit: 10 * time.Second, Devices: 4, Duration: 100 * time.Second},
		}}, err
	}
	return &Runner{Study: s, Dir: d, Workers: 2, Setup: func(_ context.Context, c Cell) (Setup, error) {
		own, err := config(s.Schedulers[c.Scheduler].Name)
		if err != nil {
			return Setup{}, err
		}
		out := Setup{Candidates: AsRequested(cl), Config: own}
		if reference != nil {
			out.Reference = func(context.Context) (sim.Config, bool) {
				c, err := config("fifo-backfill")
				if err != nil {
					t.Error(err)
				}
				return reference(c)
			}
		}
		return out, nil
	}}
}

// TestLateness: guaranteed jobs are compared with one reference run for each seed.
func TestLateness(t *testing.T) {
	ran := &atomic.Int64{}
	r := lateRunner(t, func(c sim.Config) (sim.Config, bool) {
		c.Policy = &counted{Policy: c.Policy, once: ran}
		return c, true
	})
	out, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := ran.Load(); n != 2 {
		t.Errorf("%d reference runs for 2 policies and 2 seeds, want 2", n)
	}
	rows := r.Study.Rows(out)
	sure := func(n report.Number) report.Interval { return report.Interval{Mean: n, Lo: n, Hi: n} }
	for i, want := range []Late{{Jobs: sure(0), WorstSec: 0, MeanSec: sure(0)}, {Jobs: sure(1), WorstSec: 100, MeanSec: sure(100)}} {
		if r := rows[i]; r.LateBackfill != want || r.LateSubmitted != want {
			t.Errorf("%s: by fifo-backfill %+v, as submitted %+v, want %+v", r.Scheduler, r.LateBackfill, r.LateSubmitted, want)
		}
	}
}

// TestNoReference: without a reference run, or if it fails, lateness is unknown, and the run has its other figures.
func TestNoReference(t *testing.T) {
	for name, reference := range map[string]func(sim.Config) (sim.Config, bool){
		"none":     nil,
		"no run":   func(c sim.Config) (sim.Config, bool) { return c, false },
		"it fails": func(c sim.Config) (sim.Config, bool) { c.Policy = failing{}; return c, true },
	} {
		r := lateRunner(t, reference)
		out, err := r.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Study.Rows(out) {
			if row.Failed > 0 || row.Finished != 4 || row.LateBackfill.Jobs.Mean.Defined() || row.LateBackfill.WorstSec.Defined() || !row.LateSubmitted.Jobs.Mean.Defined() {
				t.Errorf("%s: %+v", name, row)
			}
		}
	}
}
