package ones

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/loss"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// batches allows batches from least to most.
type batches struct {
	linear
	least, most int
}

func (b batches) Batches(j *spec.Job, _ *spec.NodeGroup) (least, most int, err error) {
	if j.Model.Name != "m" {
		return 0, 0, perfmodel.ErrNotCovered
	}
	return b.least, b.most, nil
}

// The batch grows with the devices until the learning rate reaches its bound, and stays
// within the allowed batches.
func TestOnesBatch(t *testing.T) {
	p := ones{batcher: batches{least: 100, most: 2000}, scale: 16}
	j := &spec.Job{Model: spec.Model{Name: "m"}, Devices: 4, GlobalBatch: 256} // 64 a device
	g := &spec.NodeGroup{}
	for n, want := range map[int]int{1: 100, 2: 128, 16: 1024, 17: 1024 / 17 * 17, 64: 1024} {
		if got, err := p.batchOn(j, g, n); got != want || err != nil {
			t.Errorf("%d devices: batch %d, want %d; %v", n, got, want, err)
		}
	}
	wide := &spec.Job{Model: spec.Model{Name: "m"}, Devices: 32, GlobalBatch: 32 * 64}
	if got, err := p.batchOn(wide, g, 32); got != 2000 || err != nil {
		t.Errorf("a job that requests 32 devices: batch %d there, want 2000; %v", got, err)
	}
	if got, err := p.batchOn(&spec.Job{Model: spec.Model{Name: "x"}, Devices: 1, GlobalBatch: 8}, g, 1); got != 0 || err != nil {
		t.Errorf("a job without allowed batches: batch %d, %v", got, err)
	}
	fixed := ones{scale: 16}
	if got, _ := fixed.batchOn(j, g, 8); got != 256 {
		t.Errorf("a job that trains its own batch: %d, want 256", got)
	}
}

// The limit doubles once a job has trained two epochs at its limit. The limit of a large
// job that has trained three times as long as the median is halved.
func TestOnesLimits(t *testing.T) {
	s := scheduler.NewSnapshot(0, spec.Cluster{Groups: []spec.NodeGroup{{Count: 4, Devices: 4}}}, nil)
	p := ones{maxDevicesFactor: 4}
	job := func(devices, limit int, epochs, scaledAt float64, trained time.Duration) *trackedJob {
		g := groupSizes{}
		for n := 1; n <= 16; n++ {
			g.add(n, []candidate.Config{{Rate: 1}})
		}
		return &trackedJob{JobState: &scheduler.JobState{Job: &spec.Job{Devices: 4}, Grant: &scheduler.Grant{Slots: []scheduler.Slot{{Devices: devices}}}},
			sizes: &sizeTable{groups: []groupSizes{{}, g}[1:], least: 1}, limit: limit, epochs: epochs, scaledAt: scaledAt, trained: trained}
	}
	jobs := []*trackedJob{
		job(1, 1, 1.9, 0, time.Minute), // young
		job(1, 1, 2, 0, time.Minute),
		job(1, 2, 9, 0, time.Minute), // below its limit
		job(2, 2, 9, 8, time.Minute), // its limit grew an epoch ago
		job(8, 8, 9, 0, 3*time.Minute),
	}
	p.scaleLimits(s, jobs)
	var got []int
	for _, j := range jobs {
		got = append(got, j.limit)
	}
	if want := []int{1, 2, 2, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("limits %v, want %v", got, want)
	}
}

// Changes wait until each affected job has trained an epoch or two minutes on its devices.
func TestOnesStay(t *testing.T) {
	p := ones{epochs: 1, minTrain: 2 * time.Minute}
	for _, c := range []struct {
		epochs  float64
		trained time.Duration
		want    bool
	}{{0.9, time.Minute, false}, {1, time.Second, true}, {0.1, 2 * time.Minute, true}} {
		j := &trackedJob{JobState: &scheduler.JobState{Job: &spec.Job{}, Grant: &scheduler.Grant{Slots: []scheduler.Slot{{Devices: 2}}}},
			epochs: 7 + c.epochs, epochsAtGrant: 7, trained: time.Hour + c.trained, trainedAtGrant: time.Hour}
		if got := p.mayDisturb([]*trackedJob{j}, []*scheduler.Grant{nil}); got != c.want {
			t.Errorf("after %g epochs, %v: %v, want %v", c.epochs, c.trained, got, c.want)
		}
		if !p.mayDisturb([]*trackedJob{j}, []*scheduler.Grant{{Slots: []scheduler.Slot{{Devices: 2}}}}) {
			t.Errorf("after %g epochs, %v its present grant counts as a change", c.epochs, c.trained)
		}
	}
}

// Crossover and mutation respect limits, filled schedules respect maxDevices and the size
// of the cluster, and layouts are adjacent.
func TestOnesSchedules(t *testing.T) {
	pol, s := midRun(t, 64, 16)
	p := pol.(*ones)
	jobs, err := p.observe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		p.iteration++
		e := p.evolve(s, jobs)
		parents := e.refresh()
		children := append(e.cross(parents[0], parents[1]), e.mutate(&allocation{count: e.countDevices(parents[2]).count, group: make([]int, len(jobs))}))
		for _, c := range children {
			for k, n := range c.count {
				if n > jobs[k].limit {
					t.Fatalf("job %d has %d devices, limit %d", k, n, jobs[k].limit)
				}
			}
			e.fill(&c)
			all := 0
			for k, n := range c.count {
				if all += n; n > p.maxDevices(jobs[k].Job) {
					t.Fatalf("job %d has %d devices of at most %d", k, n, p.maxDevices(jobs[k].Job))
				}
			}
			if all > 64 {
				t.Fatalf("%d devices of 64 are assigned", all)
			}
			checkAdjacent(t, e.layOut(&c, i%2 == 0), c.count)
		}
		jobs[i%len(jobs)].limit = 1 + i%8
	}
}

func checkAdjacent(t *testing.T, m schedule, count []int) {
	t.Helper()
	for i, n := range count {
		first := slices.Index(m, int32(i))
		for d := range m {
			if inside := first >= 0 && d >= first && d < first+n; (m[d] == int32(i)) != inside {
				t.Fatalf("job %d of %d devices in %v", i, n, m)
			}
		}
	}
}

// Equal seeds give equal runs on one core and two; other seeds give other runs.
func TestOnesIsDeterministic(t *testing.T) {
	run := func(seed uint64, cores int) *sim.Result {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		p, err := policy.NewRegistry(Info).New(policy.Spec{Name: "ones"}, policy.Deps{Oracle: linear{}, Losses: &loss.Synthetic{Steps: steps, Sigma: 0.02}, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.Run(t.Context(), sim.Config{Cluster: spec.Cluster{Groups: []spec.NodeGroup{{Count: 4, Devices: 4}}}, Jobs: drawOnesJobs(30),
			Policy: p, Truth: sim.Predicted{Predictor: linear{}}, Costs: sim.Resizing{Costs: sim.PerStart(func(spec.Job) time.Duration { return 30 * time.Second }), Resize: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	one := run(1, 1)
	if diff := cmp.Diff(one, run(1, 2), cmpopts.IgnoreFields(sim.Result{}, "Elapsed")); diff != "" {
		t.Errorf("on two cores (-one +two):\n%s", diff)
	}
	if cmp.Equal(one, run(2, 1), cmpopts.IgnoreFields(sim.Result{}, "Elapsed")) {
		t.Error("the seed does not matter")
	}
}

func steps(_ context.Context, j *spec.Job) (float64, error) { return j.Steps, nil }

func drawOnesJobs(n int) (jobs []spec.Job) {
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range n {
		jobs = append(jobs, spec.Job{ID: spec.JobID(fmt.Sprintf("j%02d", i)), Model: spec.Model{Name: "m"}, Devices: 1 + rng.IntN(8), GlobalBatch: 64,
			Plan: spec.Plan{DP: 1, MicroBatch: 64}.Normal(), Steps: 500 + 5000*rng.Float64(), Submit: time.Duration(rng.IntN(3600)) * time.Second})
	}
	return jobs
}

func (linear) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	return spec.Prediction{Throughput: float64(c.Shape.Total() * c.Plan.GlobalBatch())}, nil
}

// The gradient of the network is that of -ln Beta(rho; alpha, beta), checked numerically.
func TestOnesGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	p := newProgressModel(rng)
	for i := range p.net.out {
		p.net.out[i] = rng.NormFloat64() / 8
	}
	x, r, rho := netInput{0.3, -1, 0.7, 1.2, 1}, record{epochs: 4, left: 7}, 0.3
	minusLog := func() float64 {
		z, _ := p.net.forward(&x)
		a, b := r.epochs, 1+r.left*math.Exp(z)
		la, _ := math.Lgamma(a)
		lb, _ := math.Lgamma(b)
		lab, _ := math.Lgamma(a + b)
		return la + lb - lab - (a-1)*math.Log(rho) - (b-1)*math.Log1p(-rho)
	}
	var g network
	p.net.addGradient(&g, x, &r, rho)
	for _, c := range []struct {
		name  string
		w, of *float64
	}{{"bias", &p.net.bias, &g.bias}, {"out", &p.net.out[5], &g.out[5]}, {"in", &p.net.in[7][2], &g.in[7][2]}} {
		const h = 1e-5
		at := *c.w
		*c.w = at + h
		up := minusLog()
		*c.w = at - h
		down := minusLog()
		*c.w = at
		if want := (up - down) / (2 * h); math.Abs(*c.of-want) > 1e-6*max(1, math.Abs(want)) {
			t.Errorf("%s: %g, want %g", c.name, *c.of, want)
		}
	}
}

// The progress model learns from jobs that ended: for jobs with similar loss curves its
// error is less than half that of always guessing rho = 0.5.
func TestOnesProgressLearns(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	p := newProgressModel(rand.New(rand.NewPCG(3, 3)))
	draw := func() (records []record, all float64) {
		n := 20 + rng.IntN(80)
		c := loss.Curve{B1: 1.2, B2: 1 - 1/1.2}
		c.B0 = 15 * c.B1 / float64(n)
		var values []float64
		for k := 1; k < n; k++ {
			values = append(values, c.At(float64(k)))
			records = append(records, recordOf(&scheduler.Losses{Every: 100, Values: values, Least: c.Falls(float64(n))}, 32, float64(k)))
		}
		return records, float64(n)
	}
	for range 60 {
		p.learn(draw())
	}
	predicted, guessed := 0.0, 0.0
	for range 40 {
		records, all := draw()
		r := records[len(records)/3]
		predicted += math.Abs(p.of(&r).Mean() - r.epochs/all)
		guessed += math.Abs(0.5 - r.epochs/all)
	}
	if predicted > guessed/2 {
		t.Errorf("the mean error of rho is %.3f, that of guessing 0.5 is %.3f", predicted/40, guessed/40)
	}
}

func TestOnesOptions(t *testing.T) {
	for option, value := range map[string]string{
		"population": "1.5", "interval": "-1", "crossover": "1.5", "mutation": "-0.1", "fill-by-remaining": "maybe", "reorder": "2", "batch": "x",
		"scale": "0.5", "max-devices-factor": "NaN", "epochs": "-1", "min-train": "-1", "known-remaining": "?", "sample": "no-idea",
	} {
		_, err := policy.NewRegistry(Info).New(policy.Spec{Name: "ones", Options: map[string]string{option: value}}, policy.Deps{})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("policy ones: option %s %q: want ", option, value)) {
			t.Errorf("%s=%s: error %v", option, value, err)
		}
	}
}
