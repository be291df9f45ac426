package policy

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// full is a placer that finds no room.
type full struct{ scheduler.Placer }

func (full) Place(*scheduler.Inventory, int, spec.Shape) ([]scheduler.Slot, bool) { return nil, false }

// Who is to make way for a job does so, unless no place is found for that.
func TestPacerStopsNobodyInVain(t *testing.T) {
	packed, err := place.Lookup("packed")
	if err != nil {
		t.Fatal(err)
	}
	c := schedulertest.Nodes(1, 1)
	accelerator := c.Groups[0].Accelerator.Name
	w := &schedulertest.World{}
	w.Add("m", accelerator, schedulertest.OnePlan(1), spec.NewShape(1), 1)
	job := func(id spec.JobID, steps float64) *scheduler.JobState {
		return &scheduler.JobState{Job: &spec.Job{ID: id, Model: spec.Model{Name: "m"}, Plan: schedulertest.OnePlan(1), Devices: 1, Steps: steps}, Remaining: steps}
	}
	for _, v := range []struct {
		name   string
		placer scheduler.Placer
		want   spec.JobID
	}{{"room", packed, "short"}, {"none", full{packed}, "long"}} {
		long, short := job("long", 5000), job("short", 10)
		long.Phase = scheduler.Running
		long.Grant = &scheduler.Grant{Job: "long", Plan: long.Job.Plan, Shape: spec.NewShape(1), Slots: []scheduler.Slot{{Node: 0, Devices: 1}}}
		p := makeOne(t, "pacer", Deps{Oracle: w.Oracle(0, 0), Placer: v.placer})
		d, err := p.Decide(t.Context(), scheduler.NewSnapshot(0, c, []*scheduler.JobState{long, short}))
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Grants) != 1 || d.Grants[0].Job != v.want {
			t.Errorf("%s for a job of 10 s beside one of 5000 s that runs: grants %+v, want one of %s", v.name, d.Grants, v.want)
		}
	}
}

// A guaranteed job is due when it ends in the shadow, and starts anew while it would
// still be in time as submitted. What is not sure of a speed is no risk where the
// shadow has it too.
func TestGuarantee(t *testing.T) {
	own := option{devices: 2, shape: spec.NewShape(2), rate: 1, spread: 0.5}
	other := option{devices: 4, shape: spec.NewShape(4), rate: 2, spread: 0.4}
	j := &scheduler.JobState{Job: &spec.Job{ID: "j", Guaranteed: true}, Done: 20, Remaining: 20, StartCost: 10 * time.Second}
	p := &pacer{shadow: newShadow(newBelief(Deps{})), late: 7, caution: 0.5}
	mine := &shadowJob{way: &own, start: 10 * time.Second, run: 50 * time.Second, end: 160 * time.Second, slots: []scheduler.Slot{{Devices: 2}}}
	p.shadow.jobs["j"] = mine
	o := &outlook{pacer: p, s: scheduler.NewSnapshot(100*time.Second, schedulertest.Nodes(1, 4), []*scheduler.JobState{j})}
	task := o.task(&prospect{JobState: j, options: []option{own, other}})
	if task.Due != 60 || task.Latest != 60-10-25 || task.Late != 7 {
		t.Errorf("due in %g s, to start within %g, %g per second, want 60, 25 and 7", task.Due, task.Latest, task.Late)
	}
	if a, b := task.Ways[0].Risk, task.Ways[1].Risk; a != 0 || math.Abs(b-10*math.Expm1(0.2)) > 1e-9 {
		t.Errorf("as submitted a risk of %g s, else %g, want 0 and %g", a, b, 10*math.Expm1(0.2))
	}
	mine.end = 200 * time.Second // and waits until 140 s
	wait := 40 * math.Expm1(0.25)
	task = o.task(&prospect{JobState: j, options: []option{own, other}})
	if a, b := task.Ways[0].Risk, task.Ways[1].Risk; math.Abs(a-wait) > 1e-9 || math.Abs(b-wait-10*math.Expm1(0.2)) > 1e-9 {
		t.Errorf("while it waits a risk of %g s and %g s, want %g and %g", a, b, wait, wait+10*math.Expm1(0.2))
	}
	mine.slots = nil
	if task := o.task(&prospect{JobState: j, options: []option{own}}); task.Late != 0 {
		t.Errorf("a job that never starts in the shadow costs %g per second late, want 0", task.Late)
	}
}

// A guaranteed job may run as submitted though the oracle knows a better plan for
// the same devices.
func TestGuaranteedJobsMayRunAsSubmitted(t *testing.T) {
	c := schedulertest.Nodes(1, 2)
	accelerator := c.Groups[0].Accelerator.Name
	own := spec.Plan{DP: 2, MicroBatch: 1, AccumSteps: 1}.Normal()
	better := spec.Plan{TP: 2, MicroBatch: 2, AccumSteps: 1}.Normal()
	w := &schedulertest.World{}
	w.Add("m", accelerator, own, spec.NewShape(2), 1)
	w.Add("m", accelerator, better, spec.NewShape(2), 2)
	for _, guaranteed := range []bool{false, true} {
		j := &scheduler.JobState{Job: &spec.Job{ID: "j", Model: spec.Model{Name: "m"}, Plan: own, Devices: 2, Steps: 10, Guaranteed: guaranteed}, Remaining: 10}
		s := scheduler.NewSnapshot(0, c, []*scheduler.JobState{j})
		o := &outlook{pacer: &pacer{belief: newBelief(Deps{Oracle: w.Oracle(0, 0)})}, s: s, free: s.Free(), up: []int{1}}
		p, err := o.prospect(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		var plans []spec.Plan
		for _, way := range p.options {
			plans = append(plans, way.plan)
		}
		if want := map[bool]int{false: 1, true: 2}[guaranteed]; len(plans) != want || plans[0] != better {
			t.Errorf("guaranteed %v: plans %v, want the better one and, if guaranteed, its own", guaranteed, plans)
		}
	}
}

// Where steps are not known, those there are make no difference.
func TestUnknownStepsAreNotRead(t *testing.T) {
	for _, known := range []bool{true, false} {
		c := schedulertest.Nodes(1, 1)
		w := &schedulertest.World{}
		if known {
			w.Add("m", c.Groups[0].Accelerator.Name, schedulertest.OnePlan(1), spec.NewShape(1), 1)
		}
		starts := map[float64]spec.JobID{}
		for _, steps := range []float64{10, 1e5} {
			var jobs []*scheduler.JobState
			for _, id := range []spec.JobID{"a", "b"} {
				j := &spec.Job{ID: id, Model: spec.Model{Name: "m"}, Plan: schedulertest.OnePlan(1), Devices: 1, Steps: 1000, Duration: 1000 * time.Second}
				jobs = append(jobs, &scheduler.JobState{Job: j, Done: 500, Remaining: 500, Attained: 500})
			}
			jobs[1].Job.Steps, jobs[1].Done, jobs[1].Remaining, jobs[1].Attained = steps+100, 100, steps, 100
			jobs[1].Job.Duration = time.Duration(steps+100) * time.Second
			specs, err := Parse("pacer:steps=unknown")
			if err != nil {
				t.Fatal(err)
			}
			p, err := New(specs[0], Deps{Oracle: w.Oracle(0, 0)})
			if err != nil {
				t.Fatal(err)
			}
			d, err := p.Decide(t.Context(), scheduler.NewSnapshot(0, c, jobs))
			if err != nil || len(d.Grants) != 1 {
				t.Fatal(d.Grants, err)
			}
			starts[steps] = d.Grants[0].Job
			if d.Wake < 100*time.Second || d.Wake > 110*time.Second {
				t.Errorf("speeds known %v: asks again at %v, want once as many steps again are done", known, d.Wake)
			}
		}
		if starts[10] != "b" || starts[1e5] != "b" {
			t.Errorf("speeds known %v: with 10 and with 100,000 steps left %v start, want b, which has done less", known, starts)
		}
	}
}

func TestStepsOption(t *testing.T) {
	for text, ok := range map[string]bool{"pacer": true, "pacer:steps=known": true, "pacer:steps=unknown": true, "pacer:steps=some": false, "pacer:tries=1.5": false} {
		specs, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = New(specs[0], Deps{}); (err == nil) != ok {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

// One option goes from completion times to the makespan, and what is given stays.
func TestSpanOption(t *testing.T) {
	for _, c := range []struct {
		text                           string
		price, makespan, value, window float64
	}{
		{"pacer", 12, 1, 6, 3600},
		{"pacer:span=1", 24, 30, 60, 10800},
		{"pacer:span=0.5", 12 * math.Sqrt2, math.Sqrt(30), 6 * math.Sqrt(10), 3600 * math.Sqrt(3)},
		{"pacer:span=1:value=0", 24, 30, 0, 10800},
	} {
		specs, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		made, err := New(specs[0], Deps{})
		if err != nil {
			t.Fatal(err)
		}
		p := made.(*pacer)
		for _, v := range [][2]float64{{p.price, c.price}, {p.makespan, c.makespan}, {p.value, c.value}, {p.window, c.window}, {p.late, 1000}, {float64(p.tries), 600}} {
			if math.Abs(v[0]-v[1]) > 1e-9*v[1] {
				t.Errorf("%s: %+v, want %+v", c.text, p, c)
			}
		}
	}
}
