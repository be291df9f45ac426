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

// TestCohortsEvict checks the evictions of Kueue's documentation (concept preemption) with three
// queues of 4, 4 and 8 devices in a cohort.
func TestCohortsEvict(t *testing.T) {
	job := func(id, tenant string, devices int, guaranteed bool) *spec.Job {
		return &spec.Job{ID: spec.JobID(id), Tenant: tenant, Devices: devices, Guaranteed: guaranteed}
	}
	borrower := []*spec.Job{job("b1", "b", 4, false), job("b2", "b", 4, true), job("b3", "b", 4, false)} // 8 of them borrowed
	full := append(borrower, job("a1", "a", 4, false))
	shared := []*spec.Job{job("a1", "a", 4, false), job("a2", "a", 4, false), job("b1", "b", 4, false), job("b2", "b", 4, false)} // each borrows 4
	for _, c := range []struct {
		about, options string
		in             []*spec.Job
		j              *spec.Job
		want           string // evicted jobs; "" = none
	}{
		{"a queue within its quota reclaims, the lowest priority and the last first", "", full, job("c", "c", 4, false), "b3"},
		{"as many as needed, but none that is not borrowed", "", full, job("c", "c", 8, false), "b3 b1"},
		{"no more than needed: the last target suffices", "", append([]*spec.Job{job("b0", "b", 8, true)}, job("b1", "b", 2, false), job("a1", "a", 4, false)), job("c", "c", 8, false), "b0"},
		{"only jobs of lower priority", ":reclaim=lower", full, job("c", "c", 8, true), "b3 b1"},
		{"none of equal priority", ":reclaim=lower", full, job("c", "c", 4, false), ""},
		{"never", ":reclaim=never", full, job("c", "c", 4, false), ""},
		{"a queue above its quota reclaims nothing", "", full, job("a2", "a", 4, true), ""},
		{"but with borrow, from jobs of lower priority", ":borrow=lower", full, job("a2", "a", 4, true), "b3"},
		{"within its own queue", ":within=lower:reclaim=never", full, job("b4", "b", 4, true), "b3"},
		{"fair: the queue with the highest share gives up until shares are equal", ":fair=true", full, job("a2", "a", 4, false), "b3"},
		{"fair: equal shares stay", ":fair=true", shared, job("a3", "a", 4, true), ""},
		{"fair: first a job after which the shares are equal, if a later one is larger", ":fair=true",
			[]*spec.Job{job("b2", "b", 4, false), job("b3", "b", 8, false), job("a1", "a", 4, false)}, job("a2", "a", 4, false), "b2"},
		{"fair: of two borrowing queues the one with the larger share gives up", ":fair=true:small",
			[]*spec.Job{job("c1", "c", 8, false), job("c2", "c", 3, false), job("b1", "b", 4, false), job("b2", "b", 1, false)}, job("a1", "a", 1, false), "c2"},
		{"fair: a weight of 3 entitles to more", ":fair=true:weighted", shared, job("a3", "a", 4, false), "b2"},
	} {
		queues := "a@lab=4/b@lab=4/c@lab=8"
		if strings.Contains(c.options, ":weighted") {
			queues, c.options = "a@lab=4*3/b@lab=4/c@lab=8", strings.Replace(c.options, ":weighted", "", 1)
		}
		if strings.Contains(c.options, ":small") {
			queues, c.options = "a@lab=4/b@lab=4/c@lab=4/d@lab=4", strings.Replace(c.options, ":small", "", 1)
		}
		a := mustLookup(t, "cohorts:queues="+queues+c.options)
		var states []*scheduler.JobState
		for _, j := range c.in {
			states = append(states, &scheduler.JobState{Job: j})
		}
		s := scheduler.NewSnapshot(0, schedulertest.Nodes(2, 8), states)
		if ok, why, err := a.Admit(t.Context(), s, *c.j); ok || why == "" || err != nil {
			t.Errorf("%s: job %s is admitted without evictions: %v %q %v", c.about, c.j.ID, ok, why, err)
		}
		var got []string
		jobs, _ := a.(scheduler.Lender).Evict(s, c.j)
		for _, k := range jobs {
			got = append(got, string(k.Job.ID))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: job %s evicts %q, want %q", c.about, c.j.ID, text, c.want)
		}
	}
}

// TestCohortsAdmit checks nominal quotas, borrowing limits, quotas by type, and the order of lines.
func TestCohortsAdmit(t *testing.T) {
	a := mustLookup(t, "cohorts:queues=a@lab=4+2/b@lab=4/c=2/d@h=H100~4&A100~2/e@h=H100~4/f=8&H100~0")
	s := scheduler.NewSnapshot(0, schedulertest.Nodes(4, 8), []*scheduler.JobState{
		{Job: &spec.Job{ID: "1", Tenant: "a", Devices: 4}}, {Job: &spec.Job{ID: "2", Tenant: "d", Devices: 2, Accelerator: "A100"}},
	})
	for _, c := range []struct {
		tenant, kind  string
		devices       int
		admit, refuse string
	}{
		{"a", "", 2, "", ""}, {"a", "", 3, "3 devices do not fit into the quota of tenant \"a\": it may have 6, of 8 in its cohort", ""},
		{"b", "", 4, "", ""}, {"b", "", 5, "it may have 8, of 8", ""}, {"a", "", 7, "it may have 6", `tenant "a" may have at most 6`},
		{"c", "", 2, "", ""}, {"c", "", 3, "it may have 2, of 2", `at most 2`}, {"x", "", 1, "-", `tenant "x" has no queue`},
		{"d", "H100", 8, "", ""}, {"d", "A100", 1, "it may have 2, of 2", ""}, {"e", "A100", 1, "it may have 2", ""}, {"e", "", 1, "it may have 0", "at most 0"},
		{"f", "A100", 8, "", ""}, {"f", "H100", 1, "it may have 0, of 0", "at most 0"},
	} {
		j := spec.Job{ID: "j", Tenant: c.tenant, Devices: c.devices, Accelerator: c.kind}
		if c.admit != "-" {
			if ok, why, err := a.Admit(t.Context(), s, j); ok != (c.admit == "") || !strings.Contains(why, c.admit) || err != nil {
				t.Errorf("%+v: %v %q %v", c, ok, why, err)
			}
		}
		if why, err := a.(scheduler.Refuser).Refuse(t.Context(), s.Cluster, &j); (why == "") != (c.refuse == "") || !strings.Contains(why, c.refuse) || err != nil {
			t.Errorf("%+v: refused %q %v", c, why, err)
		}
	}
	// a and b have used 4 and none of their quotas of 4.
	heads := []*spec.Job{{ID: "a", Tenant: "a", Devices: 1}, {ID: "b", Tenant: "b", Devices: 4, Submit: time.Hour}, {ID: "b2", Tenant: "b", Devices: 4, Guaranteed: true, Submit: time.Hour}}
	if i := a.(scheduler.Lender).First(s, heads); i != 2 {
		t.Errorf("job %d first, want the guaranteed one within its quota", i)
	}
	fair := mustLookup(t, "cohorts:queues=a@lab=4/b@lab=4:fair=true")
	// After admission a borrows 1 device, b 2 or none.
	for devices, want := range map[int]int{6: 0, 4: 1} {
		heads := []*spec.Job{{ID: "a", Tenant: "a", Devices: 1}, {ID: "b", Tenant: "b", Devices: devices, Submit: time.Hour}}
		if i := fair.(scheduler.Lender).First(s, heads); i != want {
			t.Errorf("b requests %d: job %d first, want %d", devices, i, want)
		}
	}
}

// A line is in order of priority: of two held jobs of a tenant the guaranteed one is admitted first.
func TestCohortsPriority(t *testing.T) {
	got, _ := simulate(t, "cohorts:queues=a=4", 4, []spec.Job{
		{ID: "1", Tenant: "a", Devices: 4, Duration: 100 * time.Second}, {ID: "2", Tenant: "a", Devices: 4, Duration: 100 * time.Second},
		{ID: "3", Tenant: "a", Devices: 4, Duration: 100 * time.Second, Submit: time.Second, Guaranteed: true},
	})
	want := "0s 1 submitted, 0s 2 held, 0s 1 started, 1s 3 held, 1m40s 1 completed, 1m40s 3 submitted, 1m40s 3 started, 3m20s 3 completed, 3m20s 2 submitted, 3m20s 2 started, 5m0s 2 completed"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// simulate runs jobs on a node under fifo-backfill and returns the events.
func simulate(t *testing.T, rule string, devices int, jobs []spec.Job) (string, *sim.Result) {
	t.Helper()
	a := mustLookup(t, rule)
	p := mustPolicy(t, "fifo-backfill", policy.Deps{})
	var events []string
	r, err := sim.Run(t.Context(), sim.Config{Cluster: schedulertest.Nodes(1, devices), Jobs: jobs, Policy: p, Admission: a, Truth: sim.Durations{}, Audit: true,
		Observe: func(e sim.Event) { events = append(events, e.At.String()+" "+string(e.Job.ID)+" "+e.Kind.String()) }})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(events, ", "), r
}

func TestCohortsErrors(t *testing.T) {
	for in, want := range map[string]string{
		"cohorts:a":                          `"a" is not TENANT[@COHORT]=DEVICES[+LIMIT][*WEIGHT]: no quota`,
		"cohorts:queues=a=x":                 `quota "x", want a number of devices`,
		"cohorts:queues=a=1+-2":              `borrowing limit "-2", want`,
		"cohorts:queues=a=1*-2":              `weight "-2", want 0 to 1e9`,
		"cohorts:queues=a=1/a=2":             `tenant "a" has two queues`,
		"cohorts:queues=a=1&1":               `two quotas of ""`,
		"cohorts:queues=a=1:reclaim=perhaps": `option reclaim "perhaps": want one of [any lower never]`,
		"cohorts:queues=a=1:borrow=any":      `option borrow "any": want one of [lower never]`,
	} {
		if _, err := admission.Lookup(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", in, err, want)
		}
	}
}

// Tenant b borrows all devices. When a submits, the last job of b is evicted after 10 of its 100
// seconds, and resumes with its progress when a's job ends.
func TestEvictedJobsResume(t *testing.T) {
	got, r := simulate(t, "cohorts:queues=a@lab=4/b@lab=4", 8, []spec.Job{
		{ID: "b1", Tenant: "b", Devices: 4, Duration: 100 * time.Second}, {ID: "b2", Tenant: "b", Devices: 4, Duration: 100 * time.Second},
		{ID: "a", Tenant: "a", Devices: 4, Duration: 20 * time.Second, Submit: 10 * time.Second},
	})
	want := "0s b1 submitted, 0s b2 submitted, 0s b1 started, 0s b2 started, 10s b2 evicted, 10s b2 held, 10s a submitted, 10s a started, " +
		"30s a completed, 30s b2 submitted, 30s b2 started, 1m40s b1 completed, 2m0s b2 completed"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b := r.Jobs[1]; b.Evictions != 1 || b.Restarts != 1 || b.Attained != 400 {
		t.Errorf("b2: %+v", b)
	}
}
