package builtin_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/policy/optimus"
	"github.com/pacer-ml/pacer/scheduler/policy/order"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// decideAs returns the decision of a policy, and the slots that it grants to each job.
func decideAs(t *testing.T, p scheduler.Policy, now time.Duration, c spec.Cluster, jobs ...*scheduler.JobState) (map[spec.JobID][]scheduler.Slot, scheduler.Decision) {
	t.Helper()
	d, err := p.Decide(t.Context(), scheduler.NewSnapshot(now, c, jobs))
	if err != nil {
		t.Fatal(err)
	}
	out := map[spec.JobID][]scheduler.Slot{}
	for _, g := range d.Grants {
		out[g.Job] = g.Slots
	}
	return out, d
}

// holds returns a job that requests a number of devices and holds slots, if any.
func holds(id string, devices int, attained float64, slots ...scheduler.Slot) *scheduler.JobState {
	j := &scheduler.JobState{Job: &spec.Job{ID: spec.JobID(id), Model: spec.Model{Name: "m"}, Devices: devices}, Attained: attained, Remaining: 100}
	if len(slots) > 0 {
		var counts []int
		for _, s := range slots {
			counts = append(counts, s.Devices)
		}
		j.Grant = &scheduler.Grant{Job: j.Job.ID, Plan: spec.Plan{DP: devices}.Normal(), Shape: spec.NewShape(counts...), Slots: slots}
	}
	return j
}

// quirky returns a policy with variants of another simulator.
func quirky(t *testing.T, name string, q policy.Variants, oracle scheduler.Oracle) scheduler.Policy {
	t.Helper()
	placer, err := place.Lookup("emptiest")
	if err != nil {
		t.Fatal(err)
	}
	p, err := builtin.Policies.New(policy.Spec{Name: name}, policy.Deps{Variants: q, Oracle: oracle, Placer: placer})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Jobs a and b are in the first queue, c and d in the second. b preempts c and takes its
// devices. d, the last in order, fits on the remaining devices and keeps its own.
func TestByCount(t *testing.T) {
	c := schedulertest.Nodes(2, 4)
	q := policy.Variants{&order.Variant{ByCount: true}}
	jobs := []*scheduler.JobState{
		holds("a", 3, 100, scheduler.Slot{Node: 0, Devices: 3}),
		holds("b", 4, 100),
		holds("c", 4, 60000, scheduler.Slot{Node: 1, Devices: 4}),
		holds("d", 1, 60000, scheduler.Slot{Node: 0, Devices: 1}),
	}
	got, d := decideAs(t, quirky(t, "tiresias", q, nil), time.Hour, c, jobs...)
	if len(got) != 3 || !slices.Equal(got["a"], jobs[0].Grant.Slots) || !slices.Equal(got["b"], []scheduler.Slot{{Node: 1, Devices: 4}}) || !slices.Equal(got["d"], jobs[3].Grant.Slots) {
		t.Errorf("%v", got)
	}
	if d.Wake == time.Hour+time.Second {
		t.Error("without every-round it wakes after a second")
	}
	q = policy.Variants{&order.Variant{ByCount: true, EveryRound: true}}
	if _, d := decideAs(t, quirky(t, "tiresias", q, nil), time.Hour, c, jobs...); d.Wake != time.Hour+time.Second {
		t.Errorf("with every-round it wakes at %v", d.Wake)
	}
}

// With QueueByEntry two jobs of the second queue are in the order in which they entered
// it: the job submitted later entered first. Without it they are in order of submission.
func TestQueueByEntry(t *testing.T) {
	c := schedulertest.Nodes(1, 4)
	for _, q := range []order.Variant{{ByCount: true}, {ByCount: true, QueueByEntry: true}} {
		p := quirky(t, "tiresias", policy.Variants{&q}, nil)
		early, late := holds("early", 4, 0), holds("late", 4, 57600)
		decideAs(t, p, time.Hour, c, early, late)
		early = holds("early", 4, 57600)
		got, _ := decideAs(t, p, 2*time.Hour, c, early, late)
		if want := map[bool]spec.JobID{true: "late", false: "early"}[q.QueueByEntry]; len(got) != 1 || got[want] == nil {
			t.Errorf("%+v: %v, want %s", q, got, want)
		}
	}
}

// The job is slower on two devices than on one, but faster on four. A policy that only
// compares with one more device stops at one.
func TestOptimusQuirks(t *testing.T) {
	w := &schedulertest.World{}
	for n, rate := range map[int]float64{1: 1, 2: 0.9, 3: 2, 4: 3} {
		w.Add("m", "x", schedulertest.OnePlan(n), spec.NewShape(n), rate)
	}
	c := schedulertest.Nodes(1, 4)
	job := func() *scheduler.JobState {
		j := holds("a", 1, 0)
		j.Job.GlobalBatch = 1
		return j
	}
	for _, tc := range []struct {
		q    optimus.Variant
		want int
	}{{optimus.Variant{}, 4}, {optimus.Variant{NextOnly: true}, 1}, {optimus.Variant{NextOnly: true, AnyDevices: true}, 1}} {
		got, d := decideAs(t, quirky(t, "optimus-oracle", policy.Variants{&tc.q}, w.Oracle(0, 1)), time.Hour, c, job())
		if len(got["a"]) != 1 || got["a"][0].Devices != tc.want || d.Wake != time.Hour+600*time.Second {
			t.Errorf("%+v: %v, wakes at %v, want %d devices", tc.q, got, d.Wake, tc.want)
		}
	}
	_, d := decideAs(t, quirky(t, "optimus-oracle", policy.Variants{&optimus.Variant{EveryRound: true}}, w.Oracle(0, 1)), time.Hour, c, job())
	if d.Wake != time.Hour+time.Second {
		t.Errorf("with every-round it wakes at %v", d.Wake)
	}
}
