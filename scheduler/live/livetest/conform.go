package livetest

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
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Conforming are the policies that decide live as they do in the simulator.
var Conforming = []string{"fifo", "srtf", "gavel-las", "optimus", "rubick", "sia", "pacer"}

// recorder writes down what a policy is given and what it decides.
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

// Conform runs the trace in the simulator and on a cluster under a policy. The policy must be called at the same times with
// the same jobs, and must decide the same. change, if set, changes the options of the controller.
func (t *Trace) Conform(tb testing.TB, c Stage, policy string, change func(*live.Options)) {
	tb.Helper()
	simulated, lived := t.simulate(tb, policy), t.live(tb, c, policy, change)
	for i := range min(len(simulated), len(lived)) {
		if simulated[i] != lived[i] {
			tb.Fatalf("line %d of %d:\nsimulated %s\nlive      %s", i, len(simulated), simulated[i], lived[i])
		}
	}
	decisions := 0
	for _, line := range lived {
		if strings.Contains(line, " keep ") {
			decisions++
		}
	}
	if len(simulated) != len(lived) || decisions < len(t.Jobs) {
		tb.Fatalf("%d lines when simulated, %d live, of %d decisions on %d jobs", len(simulated), len(lived), decisions, len(t.Jobs))
	}
	tb.Logf("%d equal decisions on %d jobs", decisions, len(t.Jobs))
}

func (t *Trace) simulate(tb testing.TB, policy string) (decisions []string) {
	_, err := sim.Run(tb.Context(), sim.Config{
		Cluster: t.Cluster, Jobs: t.Jobs, Policy: recorder{t.Policy(tb, policy), &decisions}, PolicyName: policy, Truth: t.World.Truth(t.Cluster),
		Costs:   sim.PerStart(func(spec.Job) time.Duration { return t.Cost }),
		Observe: func(sim.Event) {}, // reasons are requested, as they are live
	})
	if err != nil {
		tb.Fatal(err)
	}
	return decisions
}

// live runs the trace on a cluster.
func (t *Trace) live(tb testing.TB, c Stage, policy string, change func(*live.Options)) (decisions []string) {
	o := live.Options{
		Cluster: c, StartCost: t.Cost, Epoch: Epoch, Now: c.Now,
		Policy: func(spec.Cluster) (scheduler.Policy, error) { return recorder{t.Policy(tb, policy), &decisions}, nil },
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
