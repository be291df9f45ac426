package pacer

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Small jobs arrive continuously; a large job needs all devices. Minimising the mean
// completion time, it waits until no more small jobs arrive. With fairness its wait is
// bounded: it starts once its ratio exceeds the ratios of the jobs that it delays by enough
// to outweigh its larger number of devices.
func TestLargeJobsAreNotPostponedForEver(t *testing.T) {
	c := schedulertest.Nodes(1, 4)
	w := &schedulertest.World{}
	w.Add("small", c.Groups[0].Accelerator.Name, schedulertest.OnePlan(1), spec.NewShape(1), 1)
	w.Add("large", c.Groups[0].Accelerator.Name, schedulertest.OnePlan(4), spec.NewShape(4), 1)
	ends := func(options string, smalls int) (large, last time.Duration) {
		jobs := []spec.Job{{ID: "large", Model: spec.Model{Name: "large"}, Plan: schedulertest.OnePlan(4), Devices: 4, Steps: 500, Submit: 30 * time.Second}}
		for i := range smalls {
			jobs = append(jobs, spec.Job{ID: spec.JobID(fmt.Sprintf("small-%04d", i)), Model: spec.Model{Name: "small"}, Plan: schedulertest.OnePlan(1), Devices: 1, Steps: 100,
				Submit: time.Duration(i) * 28 * time.Second})
		}
		specs, err := policy.NewRegistry(Info).Parse("pacer:tries=60:rounds=0" + options)
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.NewRegistry(Info).New(specs[0], policy.Deps{Oracle: w.Oracle(0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.Run(t.Context(), sim.Config{Cluster: c, Jobs: jobs, Policy: p, Truth: w.Truth(c),
			Costs: sim.PerStart(func(spec.Job) time.Duration { return 5 * time.Second })})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range r.Jobs {
			if !j.Finished {
				t.Fatalf("%s: job %s does not finish", options, j.Job.ID)
			}
			if j.Job.ID == "large" {
				large = j.End
			}
			last = max(last, j.Job.Submit)
		}
		return large, last
	}
	if large, last := ends(":value=0:makespan=0", 300); large < last {
		t.Errorf("for the mean completion time the large one ends at %v, before the last small one comes at %v: no job is postponed here", large, last)
	}
	for _, smalls := range []int{300, 400} {
		if large, _ := ends(":value=0:makespan=0:fairness=0.75", smalls); large > 6500*time.Second {
			t.Errorf("with %d small ones the large one ends at %v, want 6500 s at most, however many there are", smalls, large)
		}
	}
}

// The urgency of a job depends on its age divided by its time alone; the mean urgency is
// the same as without fairness.
func TestFairnessOption(t *testing.T) {
	for text, ok := range map[string]bool{"pacer:fairness=0": true, "pacer:fairness=0.9": true, "pacer:fairness=1": false, "pacer:fairness=-0.1": false} {
		specs, err := policy.NewRegistry(Info).Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.NewRegistry(Info).New(specs[0], policy.Deps{}); (err == nil) != ok {
			t.Errorf("%s: error %v", text, err)
		}
	}
	c := schedulertest.Nodes(1, 4)
	w := &schedulertest.World{}
	w.Add("m", c.Groups[0].Accelerator.Name, schedulertest.OnePlan(2), spec.NewShape(2), 2)
	job := func(id spec.JobID, arrived time.Duration, steps float64) *scheduler.JobState {
		return &scheduler.JobState{Remaining: steps, StartCost: 10 * time.Second,
			Job: &spec.Job{ID: id, Model: spec.Model{Name: "m"}, Plan: schedulertest.OnePlan(2), Devices: 2, Steps: steps, Submit: arrived}}
	}
	s := scheduler.NewSnapshot(1000*time.Second, c, []*scheduler.JobState{job("old", 0, 180), job("new", 900*time.Second, 180)})
	p, err := policy.NewRegistry(Info).New(policy.Spec{Name: "pacer", Options: map[string]string{"fairness": "0.5"}}, policy.Deps{Oracle: w.Oracle(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	o := &decision{pacer: p.(*pacer), s: s, free: s.Free()}
	if err := o.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	old, fresh := &o.problem.Tasks[0], &o.problem.Tasks[1]
	if old.Age != 1000 || fresh.Age != 100 || math.Abs(old.Alone-100) > 1e-9 {
		t.Errorf("they have been there for %g and %g s and take %g alone, want 1000, 100 and 100", old.Age, fresh.Age, old.Alone)
	}
	// Both can end in 100 s, at 11 and at 2 times what they take alone.
	if a, b := o.problem.Urgency(old), o.problem.Urgency(fresh); math.Abs(a+b-2) > 1e-9 || math.Abs(a/b-11./2) > 1e-9 {
		t.Errorf("urgencies %g and %g, want them to add up to 2 and to be as 11 to 2", a, b)
	}
}
