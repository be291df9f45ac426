package admission_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Under rule deadline and policy elasticflow every admitted job meets its deadline, if speeds
// and start costs are known. Without the rule the rejected jobs run by best effort, and the
// others still meet theirs.
func TestDeadlinesAreKept(t *testing.T) {
	w := &schedulertest.World{}
	for n, rate := range map[int]float64{1: 1, 2: 1.8, 4: 3} {
		w.Add("m", "x", schedulertest.OnePlan(n), spec.NewShape(n), rate)
	}
	c := schedulertest.Nodes(1, 4)
	var jobs []spec.Job
	for i := range 30 {
		at := time.Duration(i) * 30 * time.Second
		jobs = append(jobs, spec.Job{ID: spec.JobID(rune('a'+i%26)) + spec.JobID(rune('0'+i/26)), Model: spec.Model{Name: "m"}, Plan: schedulertest.OnePlan(1), Devices: 1,
			Submit: at, Steps: 300, Deadline: at + time.Duration(5+i%7*3)*time.Minute})
	}
	for _, rule := range []string{"deadline:start=10", ""} {
		d := policy.Deps{Oracle: w.Oracle(0, 1)}
		a, err := admission.New(rule, d)
		if err != nil {
			t.Fatal(err)
		}
		p := mustPolicy(t, "elasticflow", d)
		r, err := sim.Run(t.Context(), sim.Config{Cluster: c, Jobs: jobs, Policy: p, PolicyName: "elasticflow", Truth: w.Truth(c), Admission: a,
			Costs: sim.PerStart(func(spec.Job) time.Duration { return 10 * time.Second })})
		if err != nil {
			t.Fatal(err)
		}
		rejected, late := 0, 0
		for _, j := range r.Jobs {
			switch {
			case j.Rejected != "":
				rejected++
				if !strings.HasPrefix(j.Rejected, "the deadline at ") {
					t.Errorf("job %s rejected: %s", j.Job.ID, j.Rejected)
				}
			case j.End > j.Job.Deadline:
				late++
			}
		}
		t.Logf("%q: %d rejected, %d late", rule, rejected, late)
		if rule != "" && (late > 0 || rejected == 0 || rejected > 25) {
			t.Errorf("with the rule %d are rejected and %d late, want some rejected and none late", rejected, late)
		}
		if rule == "" && (late == 0 || late == 30) {
			t.Errorf("without the rule %d are late, want some", late)
		}
	}
}

// A job without a deadline, or of unknown work, is admitted.
func TestDeadlineAdmitsOthers(t *testing.T) {
	a := mustLookup(t, "deadline")
	s := scheduler.NewSnapshot(time.Hour, schedulertest.Nodes(1, 4), nil)
	for _, j := range []spec.Job{
		{ID: "no-deadline", Devices: 1, Duration: time.Hour},
		{ID: "unknown", Devices: 1, Steps: 5, Deadline: time.Hour + time.Second},
		{ID: "fits", Devices: 1, Duration: time.Hour, Deadline: 3 * time.Hour},
	} {
		if ok, why, err := a.Admit(t.Context(), s, j); !ok || why != "" || err != nil {
			t.Errorf("%s: %v %q %v", j.ID, ok, why, err)
		}
	}
	ok, why, err := a.Admit(t.Context(), s, spec.Job{ID: "late", Devices: 1, Duration: time.Hour, Deadline: 2 * time.Hour})
	if want := "the deadline at 2h0m0s cannot be met: it is in 3600 s, the job takes at least 3660 s"; ok || why != want || err != nil {
		t.Errorf("%v %q %v, want %q", ok, why, err, want)
	}
}
