package pollux

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// fixture returns the problem of waiting jobs that can run on 1 to 8 devices of nodes with 4.
// On n devices a job of model m makes n^0.8 steps/s, n^0.7 on two nodes.
func fixture(t *testing.T, options map[string]string, now time.Duration, nodes int, jobs ...*scheduler.JobState) *problem {
	t.Helper()
	w := &schedulertest.World{}
	for a := range 5 {
		for b := range a + 1 {
			if n := a + b; n > 0 {
				power := 0.8
				if b > 0 {
					power = 0.7
				}
				w.Add("m", "x", schedulertest.OnePlan(n), spec.NewShape(a, b), math.Pow(float64(n), power))
			}
		}
	}
	p, err := newPollux(policy.Deps{Oracle: w.Oracle(0, 1), Options: options})
	if err != nil {
		t.Fatal(err)
	}
	pr, err := p.(*pollux).problem(t.Context(), scheduler.NewSnapshot(now, schedulertest.Nodes(nodes, 4), jobs))
	if err != nil {
		t.Fatal(err)
	}
	return pr
}

func waiting(ids ...spec.JobID) (out []*scheduler.JobState) {
	for _, id := range ids {
		out = append(out, &scheduler.JobState{Job: &spec.Job{ID: id, Model: spec.Model{Name: "m"}, GlobalBatch: 1, Devices: 1}, Remaining: 100})
	}
	return out
}

// scheduleOf returns the schedule with the given devices of each job on each node.
func (pr *problem) scheduleOf(devices ...[]int) *schedule {
	sc := &schedule{}
	for i, counts := range devices {
		var cells []cell
		for node, n := range counts {
			if n > 0 {
				cells = append(cells, cell{node, n})
			}
		}
		sc.rows = append(sc.rows, pr.rowOf(pr.jobs[i], cells))
	}
	pr.evaluate(sc)
	return sc
}

// matrix returns the devices of each job on each node.
func (pr *problem) matrix(sc *schedule) (out [][]int) {
	for _, r := range sc.rows {
		counts := make([]int, len(pr.room))
		for _, c := range r.cells {
			counts[c.node] = c.devices
		}
		out = append(out, counts)
	}
	return out
}

// Two jobs share 8 devices of 2 nodes, so the fair share is 4 devices, and 4 devices of one
// node have speedup 1, 1 device 4^-0.8. A speedup counts 2 nodes / 8 devices = 1/4 of itself.
func TestFitness(t *testing.T) {
	one := math.Pow(4, -0.8)
	for _, c := range []struct {
		p    string
		want float64
	}{
		{"-1", 2 / (1/(0.25+1e-3) + 1/(one/4+1e-3))},
		{"-2", math.Pow((math.Pow(0.251, -2)+math.Pow(one/4+1e-3, -2))/2, -0.5)},
		{"0", math.Sqrt(0.25 * one / 4)},
	} {
		pr := fixture(t, map[string]string{"p": c.p}, 0, 2, waiting("a", "b")...)
		sc := pr.scheduleOf([]int{4, 0}, []int{0, 1})
		if math.Abs(sc.fitness-c.want) > 1e-12 {
			t.Errorf("p=%s: fitness %g, want %g", c.p, sc.fitness, c.want)
		}
		if want := (1 + one) / 8; math.Abs(sc.utilisation-want) > 1e-12 {
			t.Errorf("utilisation %g, want %g", sc.utilisation, want)
		}
	}
}

// A job with one restart that arrived 70 s ago keeps (70 - 30) / (70 + 30) of its speedup
// anywhere but on its present devices.
func TestRestartFactor(t *testing.T) {
	jobs := waiting("a")
	jobs[0].Restarts, jobs[0].StartCost = 1, 30*time.Second
	jobs[0].Grant = &scheduler.Grant{Job: "a", Plan: schedulertest.OnePlan(2), Shape: spec.NewShape(2), Slots: []scheduler.Slot{{Node: 0, Devices: 2}}}
	pr := fixture(t, nil, 70*time.Second, 2, jobs...)
	stays, moves := pr.scheduleOf([]int{2, 0}), pr.scheduleOf([]int{0, 2})
	if got, want := moves.fitness-1e-3, 0.4*(stays.fitness-1e-3); math.Abs(got-want) > 1e-12 || stays.rows[0] != pr.jobs[0].base {
		t.Errorf("moved %g, want %g", got, want)
	}
}

// A job that has never run keeps its whole speedup, as a variant of the artifact none of it at
// submission.
func TestFirstStart(t *testing.T) {
	pr := fixture(t, nil, 0, 2, waiting("a")...)
	if got := pr.jobs[0].factor; got != 1 {
		t.Errorf("restart factor %g of a new job, want 1", got)
	}
	pr.rules.StartIsRestart = true
	pr.jobs[0].StartCost = 30 * time.Second
	if err := pr.prepare(pr.jobs[0]); err != nil || pr.jobs[0].factor != 0 {
		t.Errorf("restart factor %g of a new job as in the artifact, want 0 (%v)", pr.jobs[0].factor, err)
	}
}

// Of two jobs on both nodes the second keeps the node that the first is not on: none here, so
// it has nothing. Without avoidance it has what is left. The third job gets the rest.
func TestRepair(t *testing.T) {
	for _, c := range []struct {
		options map[string]string
		in      [][]int
		want    [][]int
	}{
		{nil, [][]int{{2, 1}, {1, 3}, {4, 0}}, [][]int{{2, 1}, {0, 0}, {2, 0}}},
		{map[string]string{"interference": "false"}, [][]int{{2, 1}, {1, 3}, {4, 0}}, [][]int{{2, 1}, {1, 3}, {1, 0}}},
		{nil, [][]int{{3, 0}, {3, 0}, {3, 3}}, [][]int{{3, 0}, {1, 0}, {0, 3}}},
	} {
		pr := fixture(t, c.options, 0, 2, waiting("a", "b", "c")...)
		sc := pr.scheduleOf(c.in...)
		pr.repair(sc, rand.New(rand.NewPCG(1, 1)))
		if got := pr.matrix(sc); !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%v %v: %v, want %v", c.options, c.in, got, c.want)
		}
	}
	pr := fixture(t, map[string]string{"nodes": "1"}, 0, 2, waiting("a")...)
	sc := pr.scheduleOf([]int{3, 3})
	pr.repair(sc, rand.New(rand.NewPCG(1, 1)))
	if got := pr.matrix(sc)[0]; got[0]+got[1] != 3 || got[0]*got[1] != 0 {
		t.Errorf("with nodes=1 a job has %v", got)
	}
}

// A job with more devices than it may have keeps as many as it may.
func TestRepairKeepsTheMost(t *testing.T) {
	pr := fixture(t, nil, 0, 2, waiting("a")...)
	pr.jobs[0].most = 2
	for _, cells := range [][]cell{{{0, 4}}, {{0, 4}, {1, 3}}} {
		sc := &schedule{rows: []*row{pr.raw(pr.jobs[0], cells)}}
		pr.repair(sc, rand.New(rand.NewPCG(1, 1)))
		if sc.rows[0].devices != 2 {
			t.Errorf("%v is repaired to %v", cells, sc.rows[0].cells)
		}
	}
}

// The search finds the schedule that an exhaustive search of all numbers of devices finds: two
// or three jobs, some with devices, on two nodes of four.
func TestSearchFindsOptimum(t *testing.T) {
	jobs := waiting("a", "b", "c")
	jobs[1].Grant = &scheduler.Grant{Job: "b", Plan: schedulertest.OnePlan(3), Shape: spec.NewShape(3), Slots: []scheduler.Slot{{Node: 1, Devices: 3}}}
	jobs[1].StartCost = 30 * time.Second
	for _, n := range []int{2, 3} {
		pr := fixture(t, map[string]string{"stall": "0"}, 100*time.Second, 2, jobs[:n]...)
		best := 0.0
		counts := make([][]int, n)
		for i := range counts {
			counts[i] = make([]int, 2)
		}
		var try func(k int)
		try = func(k int) {
			if k == 2*n {
				sc := pr.scheduleOf(counts...)
				pr.repair(sc, rand.New(rand.NewPCG(1, 1)))
				pr.evaluate(sc)
				best = max(best, sc.fitness)
				return
			}
			for d := range 5 {
				counts[k/2][k%2] = d
				try(k + 1)
			}
		}
		try(0)
		got, _ := pr.search(rand.New(rand.NewPCG(1, 1)))
		if got.fitness < best*(1-1e-9) {
			t.Errorf("%d jobs: fitness %g with %v, the best is %g", n, got.fitness, pr.matrix(got), best)
		}
	}
}

// Fronts are those of the definition: the rank of a schedule is 0 if none dominates it, else
// one more than the highest rank of those that dominate it.
func TestFronts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pop []*schedule
		for range rapid.IntRange(1, 30).Draw(t, "schedules") {
			pop = append(pop, &schedule{fitness: float64(rapid.IntRange(0, 6).Draw(t, "fitness")), utilisation: float64(rapid.IntRange(0, 6).Draw(t, "utilisation"))})
		}
		want := map[*schedule]int{}
		sorted := slices.Clone(pop)
		slices.SortStableFunc(sorted, func(a, b *schedule) int {
			return cmp.Compare(b.fitness+b.utilisation, a.fitness+a.utilisation) // a dominating schedule comes first
		})
		for i, sc := range sorted {
			for _, other := range sorted[:i] {
				if other.dominates(sc) {
					want[sc] = max(want[sc], want[other]+1)
				}
			}
		}
		for rank, f := range fronts(pop) {
			for _, sc := range f {
				if want[sc] != rank || sc.rank != rank {
					t.Fatalf("fitness %g, utilisation %g: rank %d, want %d", sc.fitness, sc.utilisation, rank, want[sc])
				}
			}
		}
	})
}

// Inner schedules of a front are crowded by the distance of their neighbours.
func TestCrowding(t *testing.T) {
	f := []*schedule{{fitness: 4, utilisation: 0}, {fitness: 3, utilisation: 1}, {fitness: 1, utilisation: 3}, {fitness: 0, utilisation: 4}}
	crowd(f)
	for i, want := range []float64{math.Inf(1), 0.75 + 0.75, 0.75 + 0.75, math.Inf(1)} {
		if f[i].crowding != want {
			t.Errorf("schedule %d: %g, want %g", i, f[i].crowding, want)
		}
	}
}

// interval finds the bounds of any interval that has a power of two.
func TestInterval(t *testing.T) {
	for limit := 1; limit <= 20; limit++ {
		for lo := 1; lo <= limit; lo++ {
			for hi := lo; hi <= limit; hi++ {
				power := 1
				for power < lo {
					power *= 2
				}
				if power > hi {
					continue
				}
				least, most := interval(limit, func(n int) bool { return n >= lo && n <= hi })
				if least != lo || most != hi {
					t.Errorf("limit %d: %d to %d, want %d to %d", limit, least, most, lo, hi)
				}
			}
		}
	}
	if least, most := interval(8, func(int) bool { return false }); least != 0 || most != 0 {
		t.Errorf("an empty interval is %d to %d", least, most)
	}
}

// sample draws each number with its probability.
func TestSample(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range []float64{0.1, 0.5, 1} {
		counts := make([]int, 20)
		const draws = 10000
		for range draws {
			for i := range sample(len(counts), logNot(p), rng) {
				counts[i]++
			}
		}
		for i, n := range counts {
			if sd := math.Sqrt(draws * p * (1 - p)); math.Abs(float64(n)-draws*p) > 5*sd {
				t.Errorf("probability %g: number %d drawn %d times of %d", p, i, n, draws)
			}
		}
	}
}
