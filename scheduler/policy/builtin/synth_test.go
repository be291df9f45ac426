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

// tb has the methods common to testing.T and rapid.T.
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

// drawJobs draws jobs that are submitted between 0 and latest, in seconds.
func drawJobs(t *rapid.T, latest int) []spec.Job {
	var out []spec.Job
	for i := range rapid.IntRange(2, 16).Draw(t, "jobs") {
		out = append(out, spec.Job{ID: spec.JobID(fmt.Sprintf("j%02d", i)), Submit: time.Duration(rapid.IntRange(0, latest).Draw(t, "submit")) * time.Second,
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

// If all jobs are submitted at the start and predictions are exact, the mean JCT under synth
// is at most that of its best candidate: its rollouts of the candidates are exact.
func TestSynthIsAsGoodAsTheBestCandidate(t *testing.T) {
	better := 0
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawJobs(t, 0)
		got := meanJCT(runOf(t, jobs, "synth:policies=fifo/fifo-backfill/las/srtf:admissions=accept-all/load+1.2:every=0:round=0", ""))
		for _, p := range []string{"fifo", "fifo-backfill", "las", "srtf"} {
			for _, a := range []string{"accept-all", "load:1.2"} {
				if static := meanJCT(runOf(t, jobs, p, a)); got > static+1e-6 {
					t.Fatalf("mean JCT %g s, under policy %s with admission %s %g s", got, p, a, static)
				} else if p == "srtf" && got < static-1e-6 {
					better++
				}
			}
		}
	})
	if better == 0 {
		t.Error("synth is never better than srtf: it seems to choose nothing")
	}
}

// With one candidate synth behaves like that candidate, including its admission rule.
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
					t.Fatalf("job %s under %s: %v to %v, %d restarts; under %s with admission %q %v to %v, %d", w.Job.ID, c.synth, g.Start, g.End, g.Restarts,
						c.policy, c.admission, w.Start, w.End, w.Restarts)
				}
			}
		}
	})
}

// synth grants no devices of nodes that are down, and jobs that lose their nodes end later.
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

// The result does not depend on the number of cores.
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
