package goodput

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

var cluster = spec.Cluster{Groups: []spec.NodeGroup{{Count: 3, Devices: 4, Accelerator: spec.Accelerator{Name: "T4"}}}}

func job(batch int, epochs float64) *spec.Job {
	return &spec.Job{ID: "j", Model: spec.Model{Name: "app"}, Devices: 2, GlobalBatch: batch, Epochs: epochs}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// TestGains: at 40 samples, four times the initial 10, the gain is (1+2.1...) by the
// formula: in epoch 1, sqr 1 and var 3: 4/(3/4+1); in epoch 2, sqr 3 and var 2:
// 5/(2/4+3). At 60, half way to 80, sqr is 1.5 and var 2, then 2 and 3.
func TestGains(t *testing.T) {
	a := tables(t, "app").apps["app"]
	for batch, want := range map[int][2]float64{
		10: {1, 1},
		40: {4 / 1.75, 5 / 3.5},
		80: {3 / (1/8. + 2), 5 / (4/8. + 1)},
		60: {3.5 / (2/6. + 1.5), 5 / (3/6. + 2)},
	} {
		got, err := a.gains(batch)
		if err != nil || !near(got[0], want[0]) || !near(got[1], want[1]) {
			t.Errorf("gains at %d are %v, error %v, want %v", batch, got, err, want)
		}
	}
	if !slices.Equal(a.ends, []float64{100, 200}) {
		t.Errorf("epochs end at %v, want the least of all runs", a.ends)
	}
}

// TestSteps: the epochs of 100 initial steps each have 43.75 and 70 steps at 40 samples.
func TestSteps(t *testing.T) {
	truth := NewTruth(tables(t, "app"), cluster)
	for _, c := range []struct {
		job  *spec.Job
		want float64 // 0 = none
	}{
		{job(10, 2), 200}, {job(40, 2), 113.75}, {job(40, 1), 43.75}, {job(40, 1.5), 78.75}, {job(40, 0.5), 21.875},
		{job(40, 3), 0}, {job(9, 2), 0}, {&spec.Job{Model: spec.Model{Name: "bpp"}, GlobalBatch: 40, Epochs: 1}, 0},
		{&spec.Job{Model: spec.Model{Name: "app"}, GlobalBatch: 40, Steps: 7}, 7},
		// 20 samples on 2 devices of a node take 0.5+1+1+0.5 s
		{&spec.Job{Model: spec.Model{Name: "app"}, GlobalBatch: 40, Devices: 2, Plan: spec.Plan{DP: 2, MicroBatch: 20}, Duration: 3000 * time.Second}, 1000},
		{&spec.Job{Model: spec.Model{Name: "app"}, GlobalBatch: 40, Devices: 2, Plan: spec.Plan{DP: 2, MicroBatch: 20}, Duration: time.Second, Accelerator: "A"}, 0},
	} {
		got, err := truth.Steps(t.Context(), c.job)
		if !near(got, c.want) || (err == nil) != (c.want > 0) {
			t.Errorf("batch %d, %g epochs: %g steps, error %v, want %g", c.job.GlobalBatch, c.job.Epochs, got, err, c.want)
		}
	}
	if _, err := truth.Steps(t.Context(), job(40, 3)); !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Errorf("more epochs than measured: error %v", err)
	}
}

// TestStages checks that a plan with the job's own batch has a constant rate, and that
// one with another batch has rates by its gains in each epoch.
func TestStages(t *testing.T) {
	truth := NewTruth(tables(t, "app"), cluster)
	j := job(40, 2)
	for _, c := range []struct {
		plan  string
		rates [2]float64
		mean  float64
	}{
		{"dp=2,mb=20", [2]float64{1 / 3., 1 / 3.}, 1 / 3.},
		{"dp=2,mb=5", [2]float64{1.75 / 4 / 2.25, 3.5 / 5 / 2.25}, 113.75 / 450}, // 200 steps of 2.25 s
	} {
		p, err := spec.ParsePlan(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		g := &scheduler.Grant{Plan: p, Shape: spec.NewShape(2)}
		got, err := truth.Stages(t.Context(), j, g, &cluster.Groups[0])
		if err != nil || len(got) != 2 || !near(got[0].Rate, c.rates[0]) || !near(got[1].Rate, c.rates[1]) || !near(got[0].Until, 43.75) {
			t.Errorf("%s: %v, error %v, want %v", c.plan, got, err, c.rates)
		}
		if mean, err := truth.StepsPerSec(t.Context(), j, g, &cluster.Groups[0]); err != nil || !near(mean, c.mean) {
			t.Errorf("%s: %g steps/s, error %v, want %g", c.plan, mean, err, c.mean)
		}
	}
	if exact, interpolated, _ := truth.Lookups(); exact != 4 || interpolated != 0 {
		t.Errorf("%d step times were measured, %d interpolated; want 4 and 0", exact, interpolated)
	}
	if _, err := truth.Stages(t.Context(), j, &scheduler.Grant{Plan: spec.Plan{DP: 2, MicroBatch: 13}, Shape: spec.NewShape(2)}, &cluster.Groups[0]); err != nil {
		t.Error(err)
	}
	if exact, interpolated, _ := truth.Lookups(); exact != 4 || interpolated != 1 {
		t.Errorf("%d step times were measured, %d interpolated; want 4 and 1", exact, interpolated)
	}
	for _, plan := range []spec.Plan{{DP: 2, MicroBatch: 4}, {DP: 2, MicroBatch: 20, AccumSteps: 3}, {TP: 2, MicroBatch: 20}} {
		_, err := truth.Stages(t.Context(), j, &scheduler.Grant{Plan: plan, Shape: spec.NewShape(2)}, &cluster.Groups[0])
		if !errors.Is(err, perfmodel.ErrNotCovered) {
			t.Errorf("%s: error %v", plan, err)
		}
	}
}

// TestEpochsLeft: training at 40 counted 50 and 80 steps until the ends of its epochs, so
// 30 are left in the first epoch, and 1 in the last.
func TestEpochsLeft(t *testing.T) {
	truth := NewTruth(tables(t, "app"), cluster)
	for _, c := range []struct{ done, want float64 }{{0, 30}, {43.7, 30}, {43.75, 1}, {100, 1}} {
		if got, ok := truth.EpochsLeft(job(40, 2), c.done); !ok || got != c.want {
			t.Errorf("after %g steps %g are left, %v, want %g", c.done, got, ok, c.want)
		}
	}
	if got, ok := truth.EpochsLeft(&spec.Job{Model: spec.Model{Name: "app"}, GlobalBatch: 40, Steps: 9}, 3); ok {
		t.Errorf("a job without epochs has %g steps left", got)
	}
}

// followed counts the progress of a job independently of the simulator, in steps at the
// initial batch: the steps run on a plan times their gain in the current epoch.
type followed struct {
	done  float64
	grant *scheduler.Grant
	from  time.Duration // when training on grant begins
}

func (f *followed) until(t *rapid.T, a *app, now time.Duration) {
	if f.grant == nil {
		return
	}
	sec, err := a.speeds["T4"].stepSec(f.grant.Plan, f.grant.Shape)
	if err != nil {
		t.Fatal(err)
	}
	gains, err := a.gains(f.grant.Plan.GlobalBatch())
	if err != nil {
		t.Fatal(err)
	}
	left := (now - f.from).Seconds()
	for e, end := range a.ends {
		if left > 0 && f.done < end {
			takes := min(left, (end-f.done)*sec/gains[e])
			f.done += takes * gains[e] / sec
			left -= takes
		}
	}
	if left > 1e-6 {
		t.Fatalf("trains %g s beyond the last epoch", left)
	}
}

// restless changes plan, batch and devices of all jobs in every decision.
type restless struct{ changes int }

func (r *restless) Decide(_ context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{}
	free := scheduler.NewInventory(s.Cluster)
	for _, j := range s.Jobs() {
		r.changes++
		n := []int{1, 2, 4}[r.changes%3]
		p := spec.Plan{DP: n, MicroBatch: []int{10, 20, 13}[r.changes/3%3]}
		slots := []scheduler.Slot{{Node: r.changes % 3, Devices: n}}
		if r.changes%5 > 0 && free.Take(slots) {
			d.Grants = append(d.Grants, &scheduler.Grant{Job: j.Job.ID, Plan: p.Normal(), Shape: spec.NewShape(n), Slots: slots})
		}
	}
	if len(s.Jobs()) > 0 {
		d.Wake = s.Now + 37*time.Second
	}
	return d, nil
}

// TestEveryPolicy checks that under every policy jobs end exactly when they have made
// the progress of their epochs.
func TestEveryPolicy(t *testing.T) {
	read := tables(t, "app")
	check := func(name string, make func() (scheduler.Policy, error)) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { follow(t, read, make) })
		})
	}
	check("restless", func() (scheduler.Policy, error) { return new(restless), nil })
	for _, info := range builtin.Policies.Placing(false) {
		check(info.Name, func() (scheduler.Policy, error) {
			return builtin.Policies.New(policy.Spec{Name: info.Name}, policy.Deps{Oracle: planner.New(read, planner.Options{Space: Space{read}})})
		})
	}
}

func follow(t *rapid.T, read *Tables, make func() (scheduler.Policy, error)) {
	var jobs []spec.Job
	for i := range rapid.IntRange(1, 8).Draw(t, "jobs") {
		j := *job(rapid.IntRange(20, 80).Draw(t, "batch"), rapid.SampledFrom([]float64{1, 2}).Draw(t, "epochs"))
		j.ID, j.Devices = spec.JobID(fmt.Sprint(i)), rapid.IntRange(1, 4).Draw(t, "devices")
		j.Submit = time.Duration(rapid.IntRange(0, 600).Draw(t, "submit")) * time.Second
		jobs = append(jobs, j)
	}
	cost := time.Duration(rapid.SampledFrom([]int{0, 30}).Draw(t, "cost")) * time.Second
	p, err := make()
	if err != nil {
		t.Fatal(err)
	}
	a, by := read.apps["app"], map[spec.JobID]*followed{}
	r, err := sim.Run(context.Background(), sim.Config{
		Cluster: cluster, Jobs: read.Submit(jobs, cluster), Policy: p, PolicyName: "tested", Truth: NewTruth(read, cluster),
		Costs: sim.PerStart(func(spec.Job) time.Duration { return cost }),
		Round: time.Duration(rapid.SampledFrom([]int{0, 60}).Draw(t, "round")) * time.Second,
		Observe: func(e sim.Event) {
			f := by[e.Job.ID]
			if f == nil {
				f = &followed{}
				by[e.Job.ID] = f
			}
			switch f.until(t, a, e.At); e.Kind {
			case sim.Started, sim.Moved:
				f.grant, f.from = e.Grant, e.At+cost
			case sim.Stopped, sim.Completed:
				f.grant = nil
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range r.Jobs {
		if want := a.ends[int(j.Job.Epochs)-1]; !j.Finished || math.Abs(by[j.Job.ID].done-want) > 1e-6*want {
			t.Fatalf("job %s: %s%s, made %g of %g steps", j.Job.ID, j.Rejected, j.Unfinished, by[j.Job.ID].done, want)
		}
	}
}
