package builtin_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// tb is what tests and rapid have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
}

func policyOf(t tb, text string) scheduler.Policy {
	t.Helper()
	specs, err := builtin.Policies.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := builtin.Policies.New(specs[0], policy.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// runOf runs jobs with exact durations under a policy and an admission rule.
func runOf(t tb, jobs []spec.Job, text, outside string) *sim.Result {
	t.Helper()
	rule, err := admission.Lookup(outside)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.Run(context.Background(), sim.Config{
		Cluster: schedulertest.Nodes(2, 4), Jobs: jobs, Policy: policyOf(t, text), Truth: sim.Durations{}, Admission: rule,
		Costs: sim.PerStart(func(spec.Job) time.Duration { return 20 * time.Second }),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// drawJobs draws jobs that come within a time.
func drawJobs(t *rapid.T, within int) []spec.Job {
	var out []spec.Job
	for i := range rapid.IntRange(2, 16).Draw(t, "jobs") {
		out = append(out, spec.Job{ID: spec.JobID(fmt.Sprintf("j%02d", i)), Submit: time.Duration(rapid.IntRange(0, within).Draw(t, "submit")) * time.Second,
			Devices: rapid.SampledFrom([]int{1, 1, 2, 4, 8}).Draw(t, "devices"), Duration: time.Duration(rapid.IntRange(1, 2000).Draw(t, "s")) * time.Second})
	}
	return out
}

func meanJCT(r *sim.Result) float64 {
	sum := 0.0
	for _, j := range r.Jobs {
		sum += j.JCT().Seconds()
	}
	return sum / float64(len(r.Jobs))
}

// Where all jobs are there from the start and what is believed is true, the
// synthesizer is no worse than the best of its candidates: it knows what each
// comes to, and goes on with it or with what is better still.
func TestSynthIsAsGoodAsTheBestCandidate(t *testing.T) {
	better := 0
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawJobs(t, 0)
		got := meanJCT(runOf(t, jobs, "synth:policies=fifo/fifo-backfill/las/srtf:admissions=accept-all/load+1.2:every=0:round=0", ""))
		for _, p := range []string{"fifo", "fifo-backfill", "las", "srtf"} {
			for _, a := range []string{"accept-all", "load:1.2"} {
				if static := meanJCT(runOf(t, jobs, p, a)); got > static+1e-6 {
					t.Fatalf("mean JCT %g s, under %s behind %s %g s", got, p, a, static)
				} else if p == "srtf" && got < static-1e-6 {
					better++
				}
			}
		}
	})
	if better == 0 {
		t.Error("it was never better than srtf: nothing seems to be chosen")
	}
}

// With one candidate it is that candidate, the admission rule included.
func TestSynthOfOneIsThatOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawJobs(t, 3000)
		for _, c := range []struct{ policy, admission, synth string }{
			{"las", "load:1.2", "synth:policies=las:admissions=load+1.2"},
			{"srtf", "quota:3", "synth:policies=srtf:admissions=quota+3"},
			{"las:quantum=60", "", "synth:policies=las+quantum=60:admissions=accept-all"},
		} {
			want, got := runOf(t, jobs, c.policy, c.admission), runOf(t, jobs, c.synth, "")
			for i := range want.Jobs {
				if w, g := want.Jobs[i], got.Jobs[i]; w.Start != g.Start || w.End != g.End || w.Restarts != g.Restarts {
					t.Fatalf("job %s under %s: %v to %v, %d restarts; under %s behind %q %v to %v, %d", w.Job.ID, c.synth, g.Start, g.End, g.Restarts,
						c.policy, c.admission, w.Start, w.End, w.Restarts)
				}
			}
		}
	})
}

// Nodes that are down are not given away, and jobs they took down end later.
func TestSynthWithFailures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, err := sim.Run(context.Background(), sim.Config{
			Cluster: schedulertest.Nodes(2, 4), Jobs: drawJobs(t, 3000), Truth: sim.Durations{},
			Policy:   policyOf(t, "synth:policies=fifo/las:admissions=load+1/accept-all:every=0"),
			Failures: sim.OutageTable{0: {{Down: 200 * time.Second, Up: 900 * time.Second}}, 1: {{Down: 500 * time.Second, Up: 2000 * time.Second}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range r.Jobs {
			if !j.Finished {
				t.Fatalf("job %s: %s%s", j.Job.ID, j.Rejected, j.Unfinished)
			}
		}
	})
}

// The same comes out on any number of cores.
func TestSynthOnOneCoreAndOnTwo(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawJobs(t, 3000)
		runtime.GOMAXPROCS(1)
		one := runOf(t, jobs, "synth:placements=packed/spread", "")
		runtime.GOMAXPROCS(2)
		two := runOf(t, jobs, "synth:placements=packed/spread", "")
		if diff := cmp.Diff(one, two, cmpopts.IgnoreFields(sim.Result{}, "Elapsed")); diff != "" {
			t.Fatalf("-one core +two:\n%s", diff)
		}
	})
}
