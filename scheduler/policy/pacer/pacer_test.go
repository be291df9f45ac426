package pacer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/internal/lookahead"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// full is a placer that finds no slots.
type full struct{ scheduler.Placer }

func (full) Place(*scheduler.Inventory, int, spec.Shape) ([]scheduler.Slot, bool) { return nil, false }

// A job is preempted for another only if the other finds devices.
func TestPacerPreemptsOnlyIfTheOtherJobFits(t *testing.T) {
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
		p := pacerOf(t, policy.Deps{Oracle: w.Oracle(0, 0), Placer: v.placer})
		d, err := p.Decide(t.Context(), scheduler.NewSnapshot(0, c, []*scheduler.JobState{long, short}))
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Grants) != 1 || d.Grants[0].Job != v.want {
			t.Errorf("%s for a job of 10 s beside one of 5000 s that runs: grants %+v, want one of %s", v.name, d.Grants, v.want)
		}
	}
}

// The deadline of a guaranteed job is its end in the reference run. In every case it starts
// early enough to meet it at the speeds of that case. Where later arrivals have a price, it starts
// no later than it would need to on no more devices than it asked for.
func TestGuarantee(t *testing.T) {
	own := candidate.Config{Devices: 2, Shape: spec.NewShape(2), Rate: 1, Spread: 0.5}
	other := candidate.Config{Devices: 4, Shape: spec.NewShape(4), Rate: 2, Spread: 0.4}
	j := &scheduler.JobState{Job: &spec.Job{ID: "j", Guaranteed: true, Devices: 2}, Done: 20, Remaining: 20, StartCost: 10 * time.Second}
	twice := func(_ *spec.Job, w *candidate.Config) float64 {
		if w.Devices == own.Devices {
			return 2
		}
		return 1
	}
	half := func(_ *spec.Job, w *candidate.Config) float64 {
		if w.Devices == own.Devices {
			return 0.5
		}
		return 1.5
	}
	slots := []scheduler.Slot{{Devices: 2}}
	in := func(slower func(*spec.Job, *candidate.Config) float64, run, end time.Duration) *reference {
		return &reference{slowdown: slower, jobs: map[spec.JobID]*referenceJob{"j": {config: &own, run: run * time.Second, end: end * time.Second, slots: slots}}}
	}
	p := &pacer{deadlines: &deadlines{}, late: 6}
	o := &decision{pacer: p, s: scheduler.NewSnapshot(100*time.Second, schedulertest.Nodes(1, 4), []*scheduler.JobState{j})}
	o.problem.Price = 0.1
	task := func(cases ...*reference) lookahead.Task {
		p.deadlines.cases = cases
		return o.task(&plannedJob{JobState: j, options: []candidate.Config{own, other}})
	}
	got := task(in(nil, 40, 160), in(twice, 80, 180), in(half, 20, 150))
	// As submitted: 160-100-10-20; 180-100-10-40; 150-100-10-10. On 4 devices no later
	// than that, and 160-100-10-10, 180-100-10-10, 150-100-10-15.
	if want := []float64{30, 30, 30}; !slices.Equal(got.Candidates[0].By, want) || got.Late != 2 {
		t.Errorf("as submitted to start by %v, %g per second, want %v and 2", got.Candidates[0].By, got.Late, want)
	}
	if want := []float64{25, 30, 30}; !slices.Equal(got.Candidates[1].By, want) {
		t.Errorf("on 4 devices to start by %v, want %v", got.Candidates[1].By, want)
	}
	o.problem.Price = 0
	if got, want := o.task(&plannedJob{JobState: j, options: []candidate.Config{own, other}}), []float64{25, 40, 60}; !slices.Equal(got.Candidates[1].By, want) {
		t.Errorf("without a price: on 4 devices to start by %v, want %v", got.Candidates[1].By, want)
	}
	o.problem.Price = 0.1
	got = o.task(&plannedJob{JobState: j, options: []candidate.Config{other}})
	if want := []float64{25, 40, 60}; !slices.Equal(got.Candidates[0].By, want) {
		t.Errorf("on 4 devices alone to start by %v, want %v", got.Candidates[0].By, want)
	}
	o.jobs, j.Grant, j.Ready = nil, &scheduler.Grant{Job: "j", Slots: slots}, 90*time.Second
	p.deadlines.cases = []*reference{in(nil, 40, 105), in(half, 20, 105)}
	now := &plannedJob{JobState: j, options: []candidate.Config{own, other}, now: &other}
	if got := o.task(now); math.Abs(got.Tardy-(5+10)) > 1e-9 {
		t.Errorf("kept it is late by %g s, want 5 in one case and 10 in the other", got.Tardy)
	}
	j.Grant = nil
	for name, cases := range map[string][]*reference{"in no case": {{jobs: map[spec.JobID]*referenceJob{"j": {}}}}, "no case": nil} {
		if got := task(cases...); got.Late != 0 || len(got.Candidates[0].By) > 0 {
			t.Errorf("%s: a job that never starts under fifo-backfill is to start by %v", name, got.Candidates[0].By)
		}
	}
}

// A guaranteed job may run as submitted even if the oracle has a better plan for the same
// devices.
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
		o := &decision{pacer: &pacer{finder: candidate.NewFinder(policy.Deps{Oracle: w.Oracle(0, 0)})}, s: s, free: s.Free(), up: []int{1}}
		p, err := o.plannedJob(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		var plans []spec.Plan
		for _, way := range p.options {
			plans = append(plans, way.Plan)
		}
		if want := map[bool]int{false: 1, true: 2}[guaranteed]; len(plans) != want || plans[0] != better {
			t.Errorf("guaranteed %v: plans %v, want the better one and, if guaranteed, its own", guaranteed, plans)
		}
	}
}

// With steps=unknown the true remaining steps do not change decisions.
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
			specs, err := policy.NewRegistry(Info).Parse("pacer:steps=unknown")
			if err != nil {
				t.Fatal(err)
			}
			p, err := policy.NewRegistry(Info).New(specs[0], policy.Deps{Oracle: w.Oracle(0, 0)})
			if err != nil {
				t.Fatal(err)
			}
			d, err := p.Decide(t.Context(), scheduler.NewSnapshot(0, c, jobs))
			if err != nil || len(d.Grants) != 1 {
				t.Fatal(d.Grants, err)
			}
			starts[steps] = d.Grants[0].Job
			// With known speeds as many seconds again. Without, only a survived the octaves from 60 to 480 device-seconds. So
			// the share that ends in one is (0 + 1/2) / (1 + 1) of all jobs, (0 + 10/4) / (1 + 10) = 5/22 of jobs on as
			// many devices, and (0 + 10*5/22) / (1 + 10) = 25/121 of jobs of the model.
			want := 100.0
			if !known {
				want /= -math.Log2(1 - 25.0/121)
			}
			if math.Abs(d.Wake.Seconds()-want) > 1e-6 {
				t.Errorf("speeds known %v: asks again at %v, want %g s", known, d.Wake, want)
			}
		}
		if starts[10] != "b" || starts[1e5] != "b" {
			t.Errorf("speeds known %v: with 10 and with 100,000 steps left %v start, want b, which has done less", known, starts)
		}
	}
}

func TestStepsOption(t *testing.T) {
	for text, ok := range map[string]bool{"pacer": true, "pacer:steps=known": true, "pacer:steps=unknown": true, "pacer:steps=some": false, "pacer:tries=1.5": false} {
		specs, err := policy.NewRegistry(Info).Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = policy.NewRegistry(Info).New(specs[0], policy.Deps{}); (err == nil) != ok {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

// The load is the mean number of jobs in the system at the last fifty arrivals.
func TestLoad(t *testing.T) {
	p := &pacer{}
	all := make([]*scheduler.JobState, 200)
	for i := range all {
		all[i] = &scheduler.JobState{Job: &spec.Job{ID: spec.JobID(strconv.Itoa(i))}}
	}
	snapshot := func(present, arrived int) *scheduler.Snapshot { // came in all
		jobs := all[arrived-present : arrived]
		s := scheduler.NewSnapshot(0, schedulertest.Nodes(1, 1), jobs)
		for i, j := range jobs {
			j.Order = arrived - present + i
		}
		return s
	}
	for _, c := range []struct {
		name         string
		inside, came int
		want         float64
	}{
		{"one is alone", 1, 1, 1},
		{"a second finds it", 2, 2, 1.5},
		{"asked again", 2, 2, 1.5},
		{"one ends", 1, 2, 1.5},
		{"two come at once", 3, 4, 2.25},
		{"fifty more", 10, 54, 0}, // only the last ten of them are seen
	} {
		p.count(snapshot(c.inside, c.came))
		if c.want > 0 && math.Abs(p.load-c.want) > 1e-12 {
			t.Errorf("%s: load %g, want %g", c.name, p.load, c.want)
		}
	}
	for arrived := 55; arrived <= 200; arrived++ {
		p.count(snapshot(4, arrived))
	}
	if math.Abs(p.load-4) > 0.2 {
		t.Errorf("after many that found three the load is %g, want 4", p.load)
	}
	p = &pacer{}
	p.count(scheduler.NewSnapshot(0, schedulertest.Nodes(1, 1), nil))
	if p.load != 1 {
		t.Errorf("without jobs the load is %g, want 1", p.load)
	}
}

// The price is the load times the share of jobs that came within the mean time until a job of the last schedule ends, in
// any unit of time, and times the share of devices found in use unless jobs wait. Jobs of the first decision are none of these, and without a schedule there is no price.
func TestLater(t *testing.T) {
	for _, unit := range []time.Duration{time.Millisecond, time.Second, time.Hour} {
		at := func(now int, submits ...int) *scheduler.Snapshot {
			var jobs []*scheduler.JobState
			for i, submit := range submits {
				jobs = append(jobs, &scheduler.JobState{Order: i, Job: &spec.Job{ID: spec.JobID(fmt.Sprint(i)), Submit: time.Duration(submit) * unit}})
			}
			return scheduler.NewSnapshot(time.Duration(now)*unit, schedulertest.Nodes(1, 1), jobs)
		}
		p := &pacer{}
		p.count(at(5, 0, 5))
		p.load, p.found = 3, 0.5
		if got := p.later(at(10, 0, 5, 6, 8)); got != 0 {
			t.Errorf("%v: %g without a schedule, want 0", unit, got)
		}
		p.before.meanEnd = (10 * unit).Seconds()
		for now, want := range map[int]float64{10: 1.5, 17: 0.75, 18: 0} {
			for share, waits := range map[float64]bool{1: true, 0.5: false} {
				p.waits = waits
				if got := p.later(at(now, 0, 5, 6, 8)); math.Abs(got-share*want) > 1e-12 {
					t.Errorf("%v: %g at %d, want %g", unit, got, now, share*want)
				}
			}
		}
	}
}

// A decision takes the mean end of the last schedule of an earlier time, and whether jobs waited before it, also when it is
// repeated.
func TestLaterFollowsSchedules(t *testing.T) {
	c := schedulertest.Nodes(2, 1)
	w := &schedulertest.World{}
	w.Add("m", c.Groups[0].Accelerator.Name, schedulertest.OnePlan(1), spec.NewShape(1), 1)
	job := func(order int, id spec.JobID, submit time.Duration, steps float64) *scheduler.JobState {
		return &scheduler.JobState{Order: order, Remaining: steps, Job: &spec.Job{ID: id, Submit: submit, Model: spec.Model{Name: "m"}, Plan: schedulertest.OnePlan(1), Devices: 1, Steps: steps}}
	}
	on := func(node int) *scheduler.Grant {
		return &scheduler.Grant{Plan: schedulertest.OnePlan(1), Shape: spec.NewShape(1), Slots: []scheduler.Slot{{Node: node, Devices: 1}}}
	}
	p := pacerOf(t, policy.Deps{Oracle: w.Oracle(0, 0)}).(*pacer)
	decide := func(now time.Duration, jobs ...*scheduler.JobState) float64 {
		s := scheduler.NewSnapshot(now, c, jobs)
		if _, err := p.Decide(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return p.later(s)
	}
	a, b := job(0, "a", 0, 100), job(1, "b", 50*time.Second, 300)
	if got := decide(0, a); got != 0 {
		t.Errorf("the first decision has price %g, want 0", got)
	}
	a.Grant = on(0)
	for range 2 { // the schedule of time 0 ends after 100 s: b came within that, and two jobs are there at its arrival
		if got := decide(50*time.Second, a, b); math.Abs(got-0.1875) > 1e-12 { // a found no device in use, b one of two
			t.Errorf("price %g, want 0.1875: half of a load of 1.5, times a quarter", got)
		}
		b.Grant = on(1)
	}
	b.Grant = nil
	for range 2 {
		if got := decide(60*time.Second, a, b); math.Abs(got-0.75) > 1e-12 {
			t.Errorf("price %g while a job waits, want 0.75", got)
		}
		b.Grant = on(1)
	}
	if got := decide(500*time.Second, b); got != 0 {
		t.Errorf("price %g long after the last arrival, want 0", got)
	}
}

// Option span interpolates the other options, except those that are given.
func TestSpanOption(t *testing.T) {
	for _, c := range []struct {
		text                                               string
		price, span, makespan, lastMakespan, value, window float64
		byLoad, byArrivals                                 bool
	}{
		{"pacer", 0, 0, 0, 1, 0, 3600, false, true},
		{"pacer:makespan=0", 0, 0, 0, 0, 0, 3600, false, true},
		{"pacer:makespan=4", 0, 0, 4, 4, 0, 3600, false, true},
		{"pacer:price=load:value=3", 0, 0, 0, 1, 3, 3600, true, false},
		{"pacer:steps=unknown", 12, 0, 1, 1, 0.5, 3600, false, false},
		{"pacer:steps=unknown:price=load:makespan=0", 0, 0, 0, 0, 0.5, 3600, true, false},
		{"pacer:span=1", 0, 1, 60, 60, 3, 10800, false, true},
		{"pacer:span=0.5", 0, 0.5, 7.5, 7.5, 3 * math.Pow(0.5, 1.5), 3600 * math.Sqrt(3), false, true},
		{"pacer:span=1:price=7:value=0", 7, 0, 60, 60, 0, 10800, false, false},
		{"pacer:span=1:price=0", 0, 0, 60, 60, 3, 10800, false, false}, // no less of the makespan than with a price
		{"pacer:span=0.1:price=0", 0, 0, 0.06, 1, 3 * math.Pow(0.1, 1.5), 3600 * math.Pow(3, 0.1), false, false},
	} {
		specs, err := policy.NewRegistry(Info).Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		made, err := policy.NewRegistry(Info).New(specs[0], policy.Deps{})
		if err != nil {
			t.Fatal(err)
		}
		p := made.(*pacer)
		if p.byLoad != c.byLoad || p.byArrivals != c.byArrivals {
			t.Errorf("%s: the price is the load: %v, is the load of later arrivals: %v", c.text, p.byLoad, p.byArrivals)
		}
		for _, v := range [][2]float64{{p.price, c.price}, {p.span, c.span}, {p.makespan, c.makespan}, {p.lastMakespan, c.lastMakespan}, {p.value, c.value}, {p.window, c.window}, {p.late, 200}, {float64(p.tries), 600}} {
			if math.Abs(v[0]-v[1]) > 1e-9*v[1] {
				t.Errorf("%s: %+v, want %+v", c.text, p, c)
			}
		}
	}
}

// CPUs limit the jobs on a node even if it has more devices, and a job that needs the CPUs
// of another job can preempt it.
func TestPacerPlansHosts(t *testing.T) {
	c := schedulertest.Nodes(1, 4)
	c.Groups[0].CPUs = 4
	w := &schedulertest.World{}
	w.Add("m", c.Groups[0].Accelerator.Name, schedulertest.OnePlan(1), spec.NewShape(1), 1)
	job := func(id spec.JobID, steps float64, cpus int64) *scheduler.JobState {
		return &scheduler.JobState{Remaining: steps, Job: &spec.Job{ID: id, Model: spec.Model{Name: "m"}, Plan: schedulertest.OnePlan(1), Devices: 1, Steps: steps, Host: spec.Host{MilliCPUs: 1000 * cpus}}}
	}
	decide := func(options map[string]string, jobs ...*scheduler.JobState) (granted []spec.JobID, why map[spec.JobID]string) {
		s := scheduler.NewSnapshot(0, c, jobs)
		s.Reasons, s.Explain = true, jobs
		d, err := pacerOf(t, policy.Deps{Oracle: w.Oracle(0, 0), Options: options}).Decide(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range d.Grants {
			granted = append(granted, g.Job)
		}
		slices.Sort(granted)
		return granted, d.Why
	}
	// At the first decision later arrivals have no price, so that of equal sums of completion times that with the shorter
	// makespan is taken.
	for _, options := range []map[string]string{nil, {"makespan": "1"}, {"price": "0"}} {
		granted, why := decide(options, job("a", 100, 2), job("b", 200, 2), job("c", 300, 2))
		if !slices.Equal(granted, []spec.JobID{"a", "c"}) || !strings.HasPrefix(why["b"], "scheduled to start in 100 s") {
			t.Errorf("%v: %v run, b %q, want a and c, and b once a has ended", options, granted, why["b"])
		}
	}
	long := job("long", 1e5, 3)
	long.Phase = scheduler.Running
	long.Grant = &scheduler.Grant{Job: "long", Plan: long.Job.Plan, Shape: spec.NewShape(1), Slots: []scheduler.Slot{{Node: 0, Devices: 1, Host: long.Job.Host}}}
	if granted, why := decide(nil, long, job("short", 10, 2)); !slices.Equal(granted, []spec.JobID{"short"}) {
		t.Errorf("%v run, want short, for whose CPUs long makes way: %v", granted, why)
	}
}

// While later arrivals have no price, the makespan has its own weight.
func TestLastMakespan(t *testing.T) {
	w := &schedulertest.World{}
	for _, c := range []struct {
		price, makespan string
		want            float64
	}{{"", "", 1}, {"0", "", 1}, {"12", "", 0}, {"0", "0", 0}, {"0", "4", 4}, {"12", "4", 4}} {
		options := map[string]string{}
		if c.price != "" {
			options["price"] = c.price
		}
		if c.makespan != "" {
			options["makespan"] = c.makespan
		}
		s := scheduler.NewSnapshot(0, twoNodes(), nil)
		o := &decision{pacer: pacerOf(t, policy.Deps{Oracle: w.Oracle(0, 0), Options: options}).(*pacer), s: s, free: s.Free()}
		if err := o.prepare(t.Context()); err != nil || o.problem.End != c.want {
			t.Errorf("%v: the makespan has the weight %g, %v, want %g", options, o.problem.End, err, c.want)
		}
	}
}

func pacerOf(t *testing.T, d policy.Deps) scheduler.Policy {
	t.Helper()
	p, err := newPacer(d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
