package admission_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Invalid quotas are reported before the run.
func TestContradictoryQuotas(t *testing.T) {
	for in, want := range map[string]string{
		"guarantee:quotas=a=2/b=1/a=3": `tenant "a" has two quotas, 2 and 3`,
		"guarantee:quotas=a":           `"a" is not TENANT=DEVICES`,
		"guarantee:quotas=a=-1":        `"a=-1" is not TENANT=DEVICES`,
		"guarantee:quotas=a=2/":        `"" is not TENANT=DEVICES`,
		"guarantee:quota=a=2":          `no option "quota", there are: quotas`,
	} {
		if _, err := admission.Lookup(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", in, err, want)
		}
	}
	a := mustLookup(t, "guarantee:quotas=a=5/b=4")
	p := mustPolicy(t, "fifo", policy.Deps{})
	_, err := sim.Run(t.Context(), sim.Config{Cluster: schedulertest.Nodes(2, 4), Policy: p, Truth: sim.Durations{}, Admission: a})
	if want := "the quotas add up to 9 guaranteed devices, the cluster has 8"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// Jobs are rejected with the reason if their guarantee cannot be kept, and count as
// broken. Jobs beyond the quota are held; best-effort jobs do not wait for them.
func TestGuaranteeAdmission(t *testing.T) {
	w := &schedulertest.World{}
	for _, n := range []int{1, 2, 4} {
		w.Add("m", "x", schedulertest.OnePlan(n), spec.NewShape(n), float64(n))
	}
	job := func(id spec.JobID, tenant string, devices int, submit time.Duration) spec.Job {
		return spec.Job{ID: id, Tenant: tenant, Model: spec.Model{Name: "m"}, GlobalBatch: 1, Plan: schedulertest.OnePlan(devices), Devices: devices,
			Steps: 400, Submit: submit, Guaranteed: true}
	}
	named := job("unheard", "a", 1, 0)
	named.Model.Name = "unheard-of"
	planned := job("plan", "a", 2, 0)
	planned.Plan = spec.Plan{PP: 2}.Normal()
	late, soon := job("late", "a", 1, 0), job("soon", "a", 4, time.Second)
	late.Deadline, soon.Deadline = 99*time.Second, 160*time.Second
	best := job("best", "nobody", 4, time.Second)
	best.Guaranteed = false
	jobs := []spec.Job{job("wide", "a", 5, 0), job("none", "nobody", 1, 0), named, planned, late, soon, job("first", "a", 4, 0), job("second", "a", 2, 0), best}
	oracle := w.Oracle(0, 0)
	a, err := admission.New("guarantee:quotas=a=4/b=2", policy.Deps{Oracle: oracle})
	if err != nil {
		t.Fatal(err)
	}
	p := mustPolicy(t, "fifo", policy.Deps{Oracle: oracle})
	cluster := schedulertest.Nodes(2, 8)
	r, err := sim.Run(t.Context(), sim.Config{Cluster: cluster, Jobs: jobs, Policy: p, PolicyName: "fifo", Truth: w.Truth(cluster), Admission: a})
	if err != nil {
		t.Fatal(err)
	}
	want := map[spec.JobID]string{
		"wide":    `guaranteed: requests 5 devices, the quota of tenant "a" is 4`,
		"none":    `guaranteed: tenant "nobody" has no quota`,
		"unheard": "guaranteed: no prediction for unheard-of on 1 device, so no speed can be guaranteed",
		"plan":    "guaranteed: plan dp=1,tp=1,pp=2,mb=1,ga=1 of m is not feasible on 2 devices, so its speed cannot be guaranteed",
		"late":    "guaranteed: the deadline is 99 s after submission, the job takes at least 100 s",
	}
	starts := map[spec.JobID]time.Duration{"first": 0, "second": 100 * time.Second, "soon": 300 * time.Second, "best": time.Second}
	for _, j := range r.Jobs {
		if j.Rejected != want[j.Job.ID] {
			t.Errorf("job %s refused for %q, want %q", j.Job.ID, j.Rejected, want[j.Job.ID])
		}
		if at, runs := starts[j.Job.ID]; runs && (!j.Finished || j.Start != at) {
			t.Errorf("job %s started at %v, want %v", j.Job.ID, j.Start, at)
		}
	}
	if s := report.Summarize(r, report.Score{}); s.Guaranteed != 8 || s.BrokenGuarantees != 6 {
		t.Errorf("%d of %d guarantees broken, want 6 (5 refused, 1 done too late) of 8", s.BrokenGuarantees, s.Guaranteed)
	}
}

// Without quotas and an oracle no job is refused; best-effort jobs never are.
func TestGuaranteeKnowsNothing(t *testing.T) {
	a := mustLookup(t, "guarantee")
	r, ok := a.(scheduler.Refuser)
	if !ok {
		t.Fatal("guarantee refuses no job")
	}
	for _, j := range []spec.Job{{ID: "a", Devices: 2, Guaranteed: true}, {ID: "b", Devices: 2}} {
		if why, err := r.Refuse(t.Context(), schedulertest.Nodes(2, 4), &j); why != "" || err != nil {
			t.Errorf("job %s is refused: %s %v", j.ID, why, err)
		}
	}
}
