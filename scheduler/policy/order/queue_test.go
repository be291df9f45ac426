package order

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// steadyRankings are samples of rankings with an order that is kept between decisions. A new
// ranking need not be added: conformance checks its promise, see policy.Deps.Audit.
func steadyRankings(d policy.Deps) map[string]Ranking {
	return map[string]Ranking{
		"arrival":   {Key: bySubmission, Steady: true},
		"deadline":  {Key: byDeadline, Steady: true},
		"priority":  {Key: aged(0.3), Steady: true},
		"srtf":      {Key: srtf{finder: candidate.NewFinder(d)}.key, Steady: true},
		"predicted": {Key: srtf{finder: candidate.NewFinder(d), predicted: true}.key, Steady: true},
	}
}

// An order kept between decisions gives the same run as an order built for each
// decision, on crowded clusters of two types, with start costs and failing nodes.
func TestSteadyAsAnew(t *testing.T) {
	for name := range steadyRankings(policy.Deps{}) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { steadyAsAnew(t, name) })
		})
	}
}

func steadyAsAnew(t *rapid.T, name string) {
	c := schedulertest.DrawCase(t)
	d := policy.Deps{Oracle: c.World.Oracle(0.2, 7), Options: map[string]string{"backfill": fmt.Sprint(rapid.Bool().Draw(t, "backfill"))}}
	truth := c.World.Truth(c.Cluster)
	if rapid.Bool().Draw(t, "durations") {
		speeds := map[string]float64{"x": 1, "y": 2.5}
		d.Oracle, d.Speeds, truth = nil, speeds, sim.Durations{Speeds: speeds}
		for i := range c.Jobs {
			c.Jobs[i].Duration = time.Duration(c.Jobs[i].Steps * float64(time.Second))
		}
	}
	quantum := rapid.SampledFrom([]time.Duration{0, 10 * time.Minute}).Draw(t, "quantum")
	outages := sim.OutageTable{}
	for node := range c.Cluster.Nodes() {
		if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
			down := time.Duration(rapid.IntRange(0, 100).Draw(t, "down")) * time.Minute
			outages[node] = []sim.Outage{{Down: down, Up: down + time.Duration(rapid.IntRange(1, 30).Draw(t, "for"))*time.Minute}}
		}
	}
	run := func(steady bool) (r *sim.Result, events []string) {
		ranking := steadyRankings(d)[name]
		ranking.Steady, ranking.Quantum = steady, quantum
		p, err := Preemptive(d, ranking)
		if err != nil {
			t.Fatal(err)
		}
		r, err = sim.Run(t.Context(), sim.Config{Cluster: c.Cluster, Jobs: c.Jobs, Policy: p, PolicyName: name, Truth: truth, Round: c.Round,
			Costs: sim.PerStart(func(spec.Job) time.Duration { return c.StartCost }), Failures: outages, Audit: true,
			Observe: func(e sim.Event) { events = append(events, fmt.Sprint(e.At, e.Kind, e.Job, slotsOf(e.Grant))) }})
		if err != nil {
			t.Fatal(err)
		}
		return r, events
	}
	anew, anewEvents := run(false)
	kept, keptEvents := run(true)
	if diff := cmp.Diff(anewEvents, keptEvents); diff != "" {
		t.Fatalf("events (-anew +kept):\n%s", diff)
	}
	if diff := cmp.Diff(anew, kept, cmpopts.IgnoreFields(sim.Result{}, "Elapsed")); diff != "" {
		t.Fatalf("results (-anew +kept):\n%s", diff)
	}
}

func slotsOf(g *scheduler.Grant) []scheduler.Slot {
	if g == nil {
		return nil
	}
	return g.Slots
}

// A policy that gets a snapshot of another cluster builds its queue again.
func TestSteadyForgets(t *testing.T) {
	p := ArrivalOrder(policy.Deps{}, true)
	for i := range 3 {
		j := &spec.Job{ID: spec.JobID(fmt.Sprint("j", i)), Devices: 2, Duration: time.Hour}
		s := scheduler.NewSnapshot(0, schedulertest.Nodes(1, 4), []*scheduler.JobState{{Job: j, Remaining: 1}})
		d, err := p.Decide(t.Context(), s)
		if err != nil || len(d.Grants) != 1 || d.Grants[0].Job != j.ID {
			t.Fatalf("job %s: %v, error %v", j.ID, d.Grants, err)
		}
	}
}

// Jobs with a duration and no prediction run on the type with the higher Deps.Speeds
// while it has room, and their run time follows that speed.
func TestFasterTypeFirst(t *testing.T) {
	cluster := spec.Cluster{Groups: []spec.NodeGroup{
		{Count: 1, Devices: 2, Accelerator: spec.Accelerator{Name: "slow"}}, {Count: 1, Devices: 2, Accelerator: spec.Accelerator{Name: "fast"}},
	}}
	speeds := map[string]float64{"fast": 2}
	for _, name := range []string{"fifo", "fifo-backfill", "srtf", "las"} {
		p, err := policy.NewRegistry(FIFO, FIFOBackfill, SRTF, LAS).New(policy.Spec{Name: name}, policy.Deps{Speeds: speeds})
		if err != nil {
			t.Fatal(err)
		}
		var jobs []spec.Job
		for _, id := range []spec.JobID{"a", "b"} {
			jobs = append(jobs, spec.Job{ID: id, Devices: 2, Duration: time.Hour})
		}
		r, err := sim.Run(t.Context(), sim.Config{Cluster: cluster, Jobs: jobs, Policy: p, Truth: sim.Durations{Speeds: speeds}})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := r.Jobs[0].End, r.Jobs[1].End; a != 30*time.Minute || b != time.Hour {
			t.Errorf("%s: the jobs end at %v and %v, want 30m0s on the fast type and 1h0m0s on the slow one", name, a, b)
		}
	}
}
