package admission_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

func mustLookup(t *testing.T, rule string) scheduler.Admission {
	t.Helper()
	a, err := admission.Lookup(rule)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustPolicy(t *testing.T, name string, d policy.Deps) scheduler.Policy {
	t.Helper()
	p, err := builtin.Policies.New(policy.Spec{Name: name}, d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLookupAdmission(t *testing.T) {
	for _, name := range []string{"", "accept-all"} {
		a := mustLookup(t, name)
		if ok, why, err := a.Admit(t.Context(), nil, spec.Job{ID: "a"}); !ok || why != "" || err != nil {
			t.Errorf("%q refuses: %v %q %v", name, ok, why, err)
		}
	}
	for in, want := range map[string]string{
		"accept":        "accept-all",
		"load:lots":     `option x "lots": want a number`,
		"load:x=-1":     `option x "-1": want a number, 0 to 1e6`,
		"load:1:2":      "x is given twice",
		"load:":         `option x "": want a number`,
		"load:y=2":      `no option "y", there are: x`,
		"quota:NaN":     `option devices "NaN": want a number`,
		"accept-all:3":  "accept-all has no options",
		"quota:tenants": `option devices "tenants": want a number`,
	} {
		if _, err := admission.Lookup(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", in, err, want)
		}
	}
}

// TestAdmit has four devices, and jobs of 3, 3, 1 and 1 devices of two tenants, submitted
// one second apart.
func TestAdmit(t *testing.T) {
	for _, c := range []struct {
		rule, tenant string
		devices      int
		variant      admission.Variant
		want         bool
	}{
		{"load:1", "a", 1, admission.Variant{}, true},
		{"load:1", "a", 2, admission.Variant{}, false},
		{"load:1", "a", 2, admission.Variant{Overshoot: true}, true},
		{"load:0.74", "a", 2, admission.Variant{Overshoot: true}, false},
		{"load", "a", 1, admission.Variant{}, true},
		{"quota:3", "a", 1, admission.Variant{}, false},
		{"quota:3", "b", 3, admission.Variant{}, true},
		{"quota:devices=2", "b", 3, admission.Variant{}, true}, // no job of b is in the system
		{"quota", "a", 2, admission.Variant{}, false},
	} {
		a, err := admission.New(c.rule, policy.Deps{Variants: policy.Variants{&c.variant}})
		if err != nil {
			t.Fatal(err)
		}
		s := scheduler.NewSnapshot(0, schedulertest.Nodes(1, 4), []*scheduler.JobState{{Job: &spec.Job{Devices: 3, Tenant: "a"}}})
		ok, why, err := a.Admit(t.Context(), s, spec.Job{Tenant: c.tenant, Devices: c.devices})
		if ok != c.want || ok != (why == "") || err != nil {
			t.Errorf("%s, 3 devices of a, then %d of %s: %v %q %v", c.rule, c.devices, c.tenant, ok, why, err)
		}
	}
}

// Held jobs enter in the order of arrival once there is room, and then run.
func TestHeldJobsEnter(t *testing.T) {
	a := mustLookup(t, "load:1")
	p := mustPolicy(t, "fifo-backfill", policy.Deps{})
	var jobs []spec.Job
	for i, n := range []int{3, 3, 1, 8} {
		jobs = append(jobs, spec.Job{ID: spec.JobID("abcd"[i : i+1]), Devices: n, Submit: time.Duration(i) * time.Second, Duration: 10 * time.Second})
	}
	var events []string
	r, err := sim.Run(t.Context(), sim.Config{Cluster: schedulertest.Nodes(1, 4), Jobs: jobs, Policy: p, Admission: a, Truth: sim.Durations{},
		Observe: func(e sim.Event) { events = append(events, e.At.String()+" "+string(e.Job.ID)+" "+e.Kind.String()) }})
	if err != nil {
		t.Fatal(err)
	}
	want := "0s a submitted, 0s a started, 1s b held, 2s c held, 3s d rejected, 10s a completed, 10s b submitted, 10s c submitted, " +
		"10s b started, 10s c started, 20s b completed, 20s c completed"
	if got := strings.Join(events, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b := r.Jobs[1]; b.JCT() != 19*time.Second {
		t.Errorf("b takes %v from its submission, want 19s", b.JCT())
	}
}
