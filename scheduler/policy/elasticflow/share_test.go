package elasticflow

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/sia"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// demandOf returns a job with the given speeds on 1, 2, 4 ... devices of one group.
func demandOf(steps, deadline float64, speeds ...float64) *demand {
	m := &demand{Row: &sia.Row{JobState: &scheduler.JobState{Job: &spec.Job{ID: "a"}}}, held: -1, fits: true, left: steps, deadline: deadline}
	for i, v := range speeds {
		m.Cells = append(m.Cells, sia.Cell{Devices: 1 << i, Goodput: v})
	}
	m.setLevels(1)
	return m
}

func workOf(devices int, slot float64, demands ...*demand) *work {
	for i, m := range demands {
		m.Order = i
	}
	return &work{demands: demands, idle: []int{devices}, slot: slot}
}

// The example of section 4.1: 4 devices; jobs A and B use 1 and 2 of them during the first
// unit of time. C makes 1, 1.5 and 2 steps on 1, 2 and 4 devices, and has to make 3 in 2 units.
// With a share of 2 it makes 2.5. With 4 it has 1 device, then 4, and makes 3.
func TestMinimumSatisfactoryShare(t *testing.T) {
	free := newProfile(4)
	free.add(0, 1, -3)
	c := demandOf(3, 2, 1, 1.5, 2)
	if p := c.fill(free, 0, 1, -1, 0); math.Abs(p.end-(2+0.5/1.5)) > 1e-12 { // half a step is missing at 2
		t.Errorf("with a share of 2 it is done at %g", p.end)
	}
	p, ok := c.satisfy([]*profile{free}, -1, 0)
	if want := []part{{0, 1, 0}, {1, 2, 2}}; !ok || p.share != 4 || !slices.Equal(p.parts, want) || p.deviceSec != 5 {
		t.Errorf("%v %+v", ok, p)
	}
}

// Two jobs on two devices, each with 3 steps to make at 1 a second on one device and 1.5 on two,
// by 3 and 3.5 s. Earliest deadline first would give the first both devices until 2 s, and the
// second would be done at 4 s. With their minimum satisfactory shares of 1 both are done at 3 s.
func TestSharesBeatEarliestDeadlineFirst(t *testing.T) {
	a, b := demandOf(3, 3, 1, 1.5), demandOf(3, 3.5, 1, 1.5)
	w := workOf(2, 1, a, b)
	w.admit(map[int]bool{})
	w.plan()
	w.grow()
	if !a.fits || !b.fits || a.plan.share != 1 || b.plan.share != 1 || a.plan.end != 3 || b.plan.end != 3 {
		t.Errorf("%+v, %+v", a.plan, b.plan)
	}
}

// The same two jobs and a third that needs a device for 1 s by 3 s: it is refused, as it would
// take the device from a or b.
func TestAdmit(t *testing.T) {
	a, b, c := demandOf(3, 3, 1, 1.5), demandOf(3, 3.5, 1, 1.5), demandOf(1, 3, 1)
	admitted := map[int]bool{}
	workOf(2, 1, a, b, c).admit(admitted)
	if !admitted[0] || !admitted[1] || admitted[2] || c.fits {
		t.Errorf("%v", admitted)
	}
	d := demandOf(0.5, 4, 1)
	admitted = map[int]bool{}
	if workOf(2, 1, a, b, d).admit(admitted); !admitted[2] {
		t.Error("a job that fits after the others is refused")
	}
}

// Of two jobs with spare devices, the one that scales better gets them: on 2 devices instead of
// 1 a needs 2/1.9 as many device-seconds, b 2/1.2. A job gets none if it would then miss
// its deadline.
func TestGrow(t *testing.T) {
	a, b := demandOf(100, 1000, 1, 1.9), demandOf(100, 1000, 1, 1.2)
	w := workOf(3, 50, a, b)
	w.plan()
	w.grow()
	if a.Cells[a.pick()].Devices != 2 || b.Cells[b.pick()].Devices != 1 {
		t.Errorf("a %+v, b %+v", a.plan, b.plan)
	}
	if a.base != 1 || a.growth() != ", with 1 spare device added" {
		t.Errorf("a has a base of %d, %q", a.base, a.growth())
	}
	late := demandOf(100, 101, 1, 1.9)
	late.held, late.start = 0, 200 // a change takes longer than it has
	w = workOf(3, 50, late)
	w.plan()
	if w.grow(); late.pick() != 0 {
		t.Errorf("%+v", late.plan)
	}
}

// Best-effort jobs get what is left: the shortest first, then the one that gains most.
func TestGrowBestEffort(t *testing.T) {
	slo, short, long := demandOf(100, 100, 1, 1.9), demandOf(10, 0, 1, 1.9), demandOf(1000, 0, 1, 1.5)
	w := workOf(4, 50, long, short, slo)
	w.plan()
	w.growBestEffort()
	if slo.Cells[slo.pick()].Devices != 1 || short.Cells[short.pick()].Devices != 1 || long.Cells[long.pick()].Devices != 2 {
		t.Errorf("%+v, %+v, %+v", slo.plan, short.plan, long.plan)
	}
	w = workOf(2, 50, long, short, slo)
	w.plan()
	if w.growBestEffort(); short.pick() != 0 || long.pick() != -1 {
		t.Errorf("%+v, %+v", short.plan, long.plan)
	}
}

// With speeds proportional to devices, and without start costs, deadlines can all be met if and
// only if for each deadline D the work due by D is at most that of all devices until D
// (theorem of section 4.1). Progressive filling then meets all, else not.
func TestLinearScaling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		devices := rapid.IntRange(1, 8).Draw(t, "devices")
		var demands []*demand
		for range rapid.IntRange(1, 6).Draw(t, "jobs") {
			m := demandOf(float64(rapid.IntRange(1, 20).Draw(t, "steps")), float64(rapid.IntRange(1, 12).Draw(t, "deadline")))
			for n := range devices {
				m.Cells = append(m.Cells, sia.Cell{Devices: n + 1, Goodput: float64(n + 1)})
			}
			m.setLevels(1)
			demands = append(demands, m)
		}
		want := true
		for _, m := range demands {
			due := 0.0
			for _, other := range demands {
				if other.deadline <= m.deadline {
					due += other.left
				}
			}
			want = want && due <= float64(devices)*m.deadline+1e-9
		}
		if got := !slices.Contains(workOf(devices, 1, demands...).meet(demands), false); got != want {
			t.Fatalf("all deadlines met: %v, want %v", got, want)
		}
	})
}

// Plans never use more devices than there are, and the deadlines that are met are still met
// after growing too.
func TestPlansFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		devices := rapid.IntRange(1, 8).Draw(t, "devices")
		var demands []*demand
		for range rapid.IntRange(1, 8).Draw(t, "jobs") {
			m := demandOf(rapid.Float64Range(1, 500).Draw(t, "steps"), rapid.Float64Range(0, 300).Draw(t, "deadline"), 1,
				rapid.Float64Range(0.5, 2).Draw(t, "2"), rapid.Float64Range(0.5, 4).Draw(t, "4"))
			m.start = rapid.SampledFrom([]float64{0, 20}).Draw(t, "start")
			m.held = rapid.IntRange(-1, 2).Draw(t, "held")
			demands = append(demands, m)
		}
		w := workOf(devices, 60, demands...)
		w.admit(map[int]bool{})
		w.plan()
		w.growBestEffort()
		w.grow()
		for k, n := range w.free[0].free {
			if n < 0 {
				t.Fatalf("%d devices too many at %g s", -n, w.free[0].at[k])
			}
		}
		for i, m := range demands {
			if m.deadline != 0 && m.fits && m.plan.end > m.deadline+rounding {
				t.Fatalf("job %d is done at %g, its deadline is %g", i, m.plan.end, m.deadline)
			}
		}
	})
}

// Admits refuses a job with a deadline that cannot be met beside the others, and admits jobs
// without a deadline.
func TestAdmits(t *testing.T) {
	w := &schedulertest.World{}
	w.Add("m", "x", schedulertest.OnePlan(1), spec.NewShape(1), 1)
	job := func(id spec.JobID, order int, deadline time.Duration) *scheduler.JobState {
		return &scheduler.JobState{Job: &spec.Job{ID: id, Model: spec.Model{Name: "m"}, GlobalBatch: 1, Devices: 1, Deadline: deadline}, Order: order, Remaining: 100}
	}
	s := scheduler.NewSnapshot(0, schedulertest.Nodes(1, 1), []*scheduler.JobState{job("a", 0, 150*time.Second), job("b", 1, 0)})
	submitted := func(deadline time.Duration) *spec.Job {
		j := *job("c", 2, deadline).Job
		j.Steps = 100
		return &j
	}
	shares := NewShares(policy.Deps{Oracle: w.Oracle(0, 1)})
	for _, c := range []struct {
		deadline time.Duration
		want     string
	}{
		{0, ""},
		{200 * time.Second, ""},
		{190 * time.Second, "it is in 190 s, and the jobs with a deadline leave too few devices"},
		{120 * time.Second, "job a would miss its deadline"},
		{90 * time.Second, "it is in 90 s, the job takes at least 100 s"},
	} {
		ok, why, err := shares.Admits(t.Context(), s, submitted(c.deadline), 0)
		if err != nil || ok != (c.want == "") || why != c.want {
			t.Errorf("deadline %v: %v %q %v, want %q", c.deadline, ok, why, err, c.want)
		}
	}
}
