package live_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// trace is a trace that is simulated, or runs on a cluster in memory.
type trace struct{ *livetest.Trace }

// recorder writes the decisions of a policy down.
type recorder struct {
	scheduler.Policy
	decisions *[]string
}

func (r recorder) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	for _, j := range s.Jobs() {
		*r.decisions = append(*r.decisions, stateText(s.Now, j))
	}
	d, err := r.Policy.Decide(ctx, s)
	var parts []string
	for _, g := range d.Grants {
		parts = append(parts, fmt.Sprintf("%s: %s on %v", g.Job, g.Plan, g.Slots))
	}
	for _, id := range d.Stops {
		parts = append(parts, fmt.Sprintf("%s stops", id))
	}
	slices.Sort(parts)
	*r.decisions = append(*r.decisions, fmt.Sprintf("%v keep %v wake %v: %s", s.Now, d.Keep, d.Wake, strings.Join(parts, "; ")))
	return d, err
}

// stateText is what a policy may read of a job, to nine digits.
func stateText(now time.Duration, j *scheduler.JobState) string {
	text := fmt.Sprintf("%v: %s %d %s, %.9g done, %.9g left, %.9g attained, %d restarts, %d failures, since %v, waited %v, first run %v, start cost %v",
		now, j.Job.ID, j.Order, j.Phase, j.Done, j.Remaining, j.Attained, j.Restarts, j.Failures, j.Since, j.Waited, j.FirstRun, j.StartCost)
	if j.Grant != nil {
		text += fmt.Sprintf(", ready %v, %s on %v", j.Ready, j.Grant.Plan, j.Grant.Slots)
	}
	return text
}

var conforming = []string{"fifo", "srtf", "gavel-las", "optimus", "rubick", "sia", "pacer"}

// TestConformance runs a trace in the simulator and on a cluster in memory: every policy is
// called at the same times and decides the same.
func TestConformance(t *testing.T) {
	jobs := 200
	if testing.Short() {
		jobs = 60
	}
	for _, name := range conforming {
		t.Run(name, func(t *testing.T) {
			tr := trace{livetest.NewTrace(jobs, 7)}
			simulated, lived := tr.simulate(t, name), tr.live(t, name, nil)
			for i := range min(len(simulated), len(lived)) {
				if simulated[i] != lived[i] {
					t.Fatalf("decision %d of %d:\nsimulated %s\nlive      %s", i, len(simulated), simulated[i], lived[i])
				}
			}
			if len(simulated) != len(lived) || len(simulated) < jobs {
				t.Fatalf("%d decisions when simulated, %d live", len(simulated), len(lived))
			}
			t.Logf("%d equal decisions", len(lived))
		})
	}
}

func (t trace) simulate(tb testing.TB, name string) (decisions []string) {
	_, err := sim.Run(tb.Context(), sim.Config{
		Cluster: t.Cluster, Jobs: t.Jobs, Policy: recorder{t.Policy(tb, name), &decisions}, PolicyName: name, Truth: t.World.Truth(t.Cluster),
		Costs:   sim.PerStart(func(spec.Job) time.Duration { return t.Cost }),
		Observe: func(sim.Event) {}, // reasons are requested, as they are live
	})
	if err != nil {
		tb.Fatal(err)
	}
	return decisions
}

// live runs the trace on a cluster in memory. change, if set, changes the options.
func (t trace) live(tb testing.TB, name string, change func(*live.Options)) (decisions []string) {
	c := livetest.New(livetest.Epoch, t.Nodes()...)
	c.Violation = func(text string) { tb.Errorf("at %v: %s", c.Now(), text) }
	o := live.Options{
		Cluster: c, StartCost: t.Cost, Epoch: livetest.Epoch, Now: c.Now,
		Policy: func(spec.Cluster) (scheduler.Policy, error) { return recorder{t.Policy(tb, name), &decisions}, nil },
		OnEvent: func(e live.Event) {
			if e.Warning {
				tb.Errorf("at %v: %s %s: %s", e.At, e.Object, e.Kind, e.Message)
			}
		},
	}
	if change != nil {
		change(&o)
	}
	controller, err := live.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	t.Drive(tb, c, controller, nil)
	return decisions
}
