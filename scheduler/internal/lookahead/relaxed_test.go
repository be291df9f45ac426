package lookahead

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBoundIsBelowEveryPlan compares the bound, at random prices too, with the cost of the schedule found, of the best of
// all proposals, and of random schedules.
func TestBoundIsBelowEveryPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(t)
		plan, err := Search(context.Background(), p, Options{Tries: 20, Rounds: rapid.IntRange(1, 60).Draw(t, "rounds"), Prices: drawPrices(t, len(p.Tasks))})
		if err != nil || len(p.Tasks) == 0 {
			return
		}
		costs := map[string]float64{"found": plan.Cost, "best in order": exhaust(p), "random": randomPlan(t, p)}
		r := newRelaxed(p, []float64{0, 3, 10, 11, 40}, &Memory{})
		for g := range r.price {
			for i := range r.price[g] {
				r.price[g][i] = rapid.Float64Range(0, 3).Draw(t, "price")
			}
		}
		for i := range r.lambda {
			r.lambda[i] = p.End / float64(len(r.lambda))
		}
		for what, bound := range map[string]float64{"proven": plan.Bound, "of random prices": r.bound()} {
			for which, cost := range costs {
				if bound > cost+1e-9*(1+math.Abs(cost)) {
					t.Fatalf("the bound %s is %g, the plan %s costs %g", what, bound, which, cost)
				}
			}
		}
	})
}

// drawPrices draws prices of slightly different tasks, or none.
func drawPrices(t *rapid.T, tasks int) (p Prices) {
	if rapid.Bool().Draw(t, "no prices") {
		return p
	}
	price := rapid.Float64Range(0, 3)
	p.Times = []float64{-5, 3, 20}
	for range rapid.IntRange(0, 2).Draw(t, "groups with prices") {
		p.Devices = append(p.Devices, []float64{price.Draw(t, "price"), price.Draw(t, "price")})
	}
	for range rapid.IntRange(0, tasks).Draw(t, "ends with prices") {
		p.Ends = append(p.Ends, price.Draw(t, "price of an end"))
	}
	return p
}

// randomPlan returns the cost of a schedule in which tasks with random candidates run one after the other, with pauses.
func randomPlan(t *rapid.T, p *Problem) float64 {
	cost, last, at := 0.0, 0.0, 0.0
	for i := range p.Tasks { // kept tasks first: the others start when all of them have ended
		if k := &p.Tasks[i]; len(k.Held) > 0 {
			cost += p.keeping(k)
			at = max(at, k.Left)
		}
	}
	last = at
	for i := range p.Tasks {
		k := &p.Tasks[i]
		if len(k.Held) > 0 || len(k.Candidates) == 0 {
			continue
		}
		w := &k.Candidates[rapid.IntRange(0, len(k.Candidates)-1).Draw(t, "candidate")]
		at += rapid.Float64Range(0, 5).Draw(t, "idle before")
		cost += p.starting(k, w, at)
		at += w.Seconds
		last = max(last, at)
	}
	return cost + p.End*last
}

// TestWaitingCosts checks an assumption of the relaxation: a second of delay costs at least the urgency at the end.
func TestWaitingCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(t)
		for i := range p.Tasks {
			k := &p.Tasks[i]
			for j := range k.Candidates {
				w := &k.Candidates[j]
				a := rapid.Float64Range(0, 60).Draw(t, "start")
				b := a + rapid.Float64Range(0, 60).Draw(t, "wait")
				early, late := p.starting(k, w, a), p.starting(k, w, b)
				if late < early+p.urgency(k, a+w.Seconds)*(b-a)-1e-9*(1+math.Abs(early)) {
					t.Fatalf("task %d costs %g from %g s on, %g from %g s on", i, early, a, late, b)
				}
				if o := k.Candidates[0]; o.covers(w) && p.starting(k, &o, a) > early+1e-9*(1+math.Abs(early)) {
					t.Fatalf("task %d: candidate 0 covers %d and costs more", i, j)
				}
			}
		}
	})
}

// TestBoundIsTight checks that the bound equals the cost for tasks that do not compete, and for equal tasks one after the
// other.
func TestBoundIsTight(t *testing.T) {
	equal := func(tasks, devices int, end float64) *Problem {
		p := &Problem{Nodes: []Node{{Devices: devices}}, Price: 0.5, End: end, Value: 0.2, Window: 15}
		for range tasks {
			p.Tasks = append(p.Tasks, Task{Weight: 1, Work: 8, Candidates: []Candidate{
				{Counts: []int{1}, Devices: 1, Idle: 2, Seconds: 10}, {Counts: []int{2}, Devices: 2, Idle: 2, Seconds: 9}}})
		}
		return p
	}
	queue := equal(12, 3, 1)
	for i := range queue.Tasks {
		queue.Tasks[i].Candidates = queue.Tasks[i].Candidates[:1]
	}
	runs := equal(2, 4, 1)
	runs.Tasks[0].Held, runs.Tasks[0].Left = []Slot{{Node: 0, Devices: 2}}, 5
	for name, c := range map[string]struct {
		p   *Problem
		gap float64
	}{
		"one":                   {equal(1, 4, 1), 1e-9},
		"four side by side":     {equal(4, 4, 1), 1e-9},
		"one runs, one waits":   {runs, 1e-9},
		"six, one at a time":    {equal(6, 1, 0), 0.01},
		"twelve, three abreast": {queue, 0.02},
	} {
		plan := mustSearch(t, c.p, Options{Tries: 100, Rounds: 500})
		if gap := c.p.Gap(&plan); gap > c.gap {
			t.Errorf("%s: cost %g, bound %g, gap %g", name, plan.Cost, plan.Bound, gap)
		}
	}
}

// TestUndominated checks that a candidate is left out only if another is as good in every respect.
func TestUndominated(t *testing.T) {
	first := Candidate{Devices: 4, Seconds: 10, Idle: 2, By: []float64{5, 8}}
	for _, c := range []struct {
		name string
		than Candidate
		want int
	}{
		{"the same", first, 1},
		{"better in all", Candidate{Devices: 2, Seconds: 9, Idle: 1, By: []float64{6, 8}}, 1},
		{"whenever", Candidate{Devices: 2, Seconds: 9, Idle: 1}, 1},
		{"of another group", Candidate{Group: 1, Devices: 2, Seconds: 9, Idle: 1}, 2},
		{"wider", Candidate{Devices: 5, Seconds: 9, Idle: 1}, 2},
		{"slower", Candidate{Devices: 2, Seconds: 11, Idle: 1}, 2},
		{"longer to start", Candidate{Devices: 2, Seconds: 9, Idle: 3}, 2},
		{"earlier in one case", Candidate{Devices: 2, Seconds: 9, Idle: 1, By: []float64{4, 9}}, 2},
	} {
		r := newRelaxed(&Problem{Price: 1, Nodes: []Node{{Devices: 8}, {Group: 1, Devices: 8}}, Tasks: []Task{{Weight: 1, Late: 1, Candidates: []Candidate{first, c.than}}}}, []float64{0, 1}, &Memory{})
		if got := len(r.options[0].rest); got != c.want {
			t.Errorf("%s: %d candidates are left, want %d", c.name, got, c.want)
		}
	}
	// The first covers the third, though the second, which is kept, takes longer.
	three := []Candidate{{Devices: 1, Seconds: 5, Idle: 3}, {Devices: 2, Seconds: 8, Idle: 1}, {Devices: 3, Seconds: 6, Idle: 3}}
	r := newRelaxed(&Problem{Price: 1, Nodes: []Node{{Devices: 8}}, Tasks: []Task{{Weight: 1, Candidates: three}}}, []float64{0, 1}, &Memory{})
	if got := len(r.options[0].rest); got != 2 {
		t.Errorf("%d of three candidates are left, want 2", got)
	}
}

func TestProject(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		sum  float64
		want []float64
	}{
		{[]float64{1, 2}, 3, []float64{1, 2}},
		{[]float64{2, 3}, 3, []float64{1, 2}},
		{[]float64{5, 0, -4}, 1, []float64{1, 0, 0}},
		{[]float64{1, 1, 1, 1}, 2, []float64{0.5, 0.5, 0.5, 0.5}},
		{[]float64{1, -1}, 2, []float64{1, 0}},
	} {
		got := slices.Clone(c.v)
		project(got, c.sum)
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-12 {
				t.Errorf("%v to the sum %g: %v, want %v", c.v, c.sum, got, c.want)
				break
			}
		}
	}
}

// city returns a problem of tasks that can run on four types of nodes with 8 devices, with the given number of device
// counts on each type. Every third task runs already. Work, speeds and scaling are random; load multiplies the work.
func city(tasks, nodes, counts int, seed uint64, load float64) *Problem {
	r := rand.New(rand.NewPCG(seed, 0x63697479))
	all := float64(8 * nodes)
	p := &Problem{Price: 12 / all, End: 1, Value: 6 / all, Window: 3600}
	for i := range nodes {
		p.Nodes = append(p.Nodes, Node{Group: i * 4 / nodes, Devices: 8})
	}
	room := 0 // nodes held by tasks
	for i := range tasks {
		k := Task{Weight: 1}
		work := math.Exp(1.5*r.NormFloat64()) * 8 * 3600 * load
		for g := range 4 {
			speed, efficiency := float64(1+g)*math.Exp(r.NormFloat64()/3), 0.6+0.35*r.Float64()
			for _, n := range cityCounts[:counts] {
				if n > 2*nodes {
					continue
				}
				run := work / speed / math.Pow(float64(n), efficiency) * math.Exp(r.NormFloat64()/20)
				w := Candidate{Group: g, Devices: n, Idle: 60, Seconds: 60 + run}
				for left := n; left > 0; left -= 8 {
					w.Counts = append(w.Counts, min(left, 8))
				}
				if area := run * float64(n); k.Work == 0 || area < k.Work {
					k.Work = area
				}
				k.Candidates = append(k.Candidates, w)
			}
		}
		if i%3 == 0 && room < nodes {
			k.Held, k.Left = []Slot{{Node: room, Devices: 8}}, k.Work/8*(0.5+r.Float64())
			room++
		}
		p.Tasks = append(p.Tasks, k)
	}
	return p
}

var cityCounts = []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64}

// TestPricesGuide checks that with many tasks, proposals from prices beat random changes alone and have a small gap.
func TestPricesGuide(t *testing.T) {
	for _, c := range []struct {
		tasks, nodes, counts int
		gap                  float64
	}{{120, 8, 8, 0.12}, {300, 250, 20, 0.06}} {
		p := city(c.tasks, c.nodes, c.counts, 1, 1)
		blind := mustSearch(t, p, Options{Tries: 600, Steps: 30_000_000})
		plan := mustSearch(t, p, Options{Rounds: 60})
		t.Logf("%d tasks: cost %.0f, %.0f without prices, gap %.3f", c.tasks, plan.Cost, blind.Cost, p.Gap(&plan))
		if plan.Cost > blind.Cost || p.Gap(&plan) > c.gap {
			t.Errorf("%d tasks: cost %g, %g without prices, gap %g", c.tasks, plan.Cost, blind.Cost, p.Gap(&plan))
		}
	}
}

// BenchmarkDecide schedules jobs on four types of devices with 20 sizes on each type: cold, and from a schedule some
// seconds older with four more jobs since.
func BenchmarkDecide(b *testing.B) {
	for _, c := range []struct {
		jobs, nodes int
		load        float64
	}{{100, 125, 1}, {300, 375, 1}, {1000, 1250, 1}, {1000, 1250, 10}, {3000, 3750, 1}} {
		p := city(c.jobs, c.nodes, 20, 1, c.load)
		o := Options{Rounds: 60, Tries: 600, Steps: 300_000_000}
		name := fmt.Sprintf("jobs=%d/devices=%d/types=4/plans=20/load=%g/after=", c.jobs, 8*c.nodes, c.load)
		b.Run(name+"nothing", func(b *testing.B) { benchmarkSearch(b, p, o) })
		b.Run(name+"another", func(b *testing.B) {
			plan := mustSearch(b, p, o)
			o := o
			var next *Problem
			next, o.Hint, o.Prices = later(p, &plan, 10*c.load, city(c.jobs+4, c.nodes, 20, 2, c.load).Tasks[c.jobs:])
			benchmarkSearch(b, next, o)
		})
	}
}

func benchmarkSearch(b *testing.B, p *Problem, o Options) {
	var plan Schedule
	from := userTime(b)
	for b.Loop() {
		var err error
		if plan, err = Search(b.Context(), p, o); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((userTime(b)-from).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(p.Gap(&plan), "gap")
}

func userTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
