package schedulertest_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// fault changes the decisions of a correct policy.
type fault func(p scheduler.Policy, s *scheduler.Snapshot) (scheduler.Decision, error)

// faults are mistakes of policies, each with a part of the suite's message.
var faults = map[string]struct {
	make func() fault
	says string
}{
	"grants one device twice": {func() fault {
		return func(p scheduler.Policy, s *scheduler.Snapshot) (scheduler.Decision, error) {
			d, err := p.Decide(context.Background(), s)
			for i, g := range d.Grants {
				if i > 0 && g.Shape == d.Grants[0].Shape && s.Cluster.Groups[0].Devices < 2*g.Shape.Most() {
					d.Grants[i] = &scheduler.Grant{Job: g.Job, Plan: g.Plan, Shape: g.Shape, Slots: d.Grants[0].Slots}
				}
			}
			return d, err
		}
	}, "devices, "},
	"grants one job twice": {func() fault {
		return func(p scheduler.Policy, s *scheduler.Snapshot) (scheduler.Decision, error) {
			d, err := p.Decide(context.Background(), s)
			return scheduler.Decision{Grants: append(d.Grants, d.Grants...)}, err
		}
	}, "is granted devices twice"},
	"ignores the snapshot": {func() fault {
		var first *scheduler.Decision
		return func(p scheduler.Policy, s *scheduler.Snapshot) (scheduler.Decision, error) {
			if first == nil {
				d, err := p.Decide(context.Background(), s)
				first = &d
				return d, err
			}
			return *first, nil
		}
	}, "is not in the queue"},
	"draws at random": {func() fault {
		return func(p scheduler.Policy, s *scheduler.Snapshot) (scheduler.Decision, error) {
			d, err := p.Decide(context.Background(), s)
			if n := len(d.Grants); n > 1 && rand.IntN(2) == 0 {
				d.Grants = d.Grants[:n-1]
				d.Wake = s.Now + time.Minute
			}
			return d, err
		}
	}, "two runs differ"},
	"goes by names": {func() fault {
		return func(p scheduler.Policy, s *scheduler.Snapshot) (scheduler.Decision, error) {
			fewer := *s
			fewer.Waiting = slices.DeleteFunc(slices.Clone(s.Waiting), func(j *scheduler.JobState) bool {
				return strings.HasPrefix(string(j.Job.ID), "renamed") && len(s.Jobs()) > 1
			})
			return p.Decide(context.Background(), &fewer)
		}
	}, "renamed and an hour later"},
	"writes into the snapshot": {func() fault {
		return func(p scheduler.Policy, s *scheduler.Snapshot) (scheduler.Decision, error) {
			d, err := p.Decide(context.Background(), s)
			slices.Reverse(s.Jobs())
			return d, err
		}
	}, "Decide changed the snapshot"},
	"counts its calls": {func() fault {
		calls := 0
		return func(p scheduler.Policy, s *scheduler.Snapshot) (scheduler.Decision, error) {
			d, err := p.Decide(context.Background(), s)
			if calls++; len(d.Grants) > 0 && calls%3 == 0 {
				d.Why = map[spec.JobID]string{d.Grants[0].Job: "third call"}
			}
			return d, err
		}
	}, "two calls of Decide at"},
	"passes large jobs over": {func() fault {
		return func(p scheduler.Policy, s *scheduler.Snapshot) (scheduler.Decision, error) {
			d, err := p.Decide(context.Background(), s)
			d.Grants = slices.DeleteFunc(d.Grants, func(g *scheduler.Grant) bool { return g.Devices() > 3 })
			return d, err
		}
	}, "large: the policy gave it no devices"},
	"grants when nobody is there": {func() fault {
		return func(scheduler.Policy, *scheduler.Snapshot) (scheduler.Decision, error) {
			return scheduler.Decision{Grants: []*scheduler.Grant{{Job: "ghost"}}}, nil
		}
	}, "empty snapshot: 1 grants"},
	"fails without an oracle": {func() fault {
		return func(p scheduler.Policy, s *scheduler.Snapshot) (scheduler.Decision, error) {
			for _, j := range s.Jobs() {
				if j.Job.Model.Name == "unheard-of" {
					return scheduler.Decision{}, context.DeadlineExceeded
				}
			}
			return p.Decide(context.Background(), s)
		}
	}, "deadline exceeded"},
}

type faulty struct {
	sound scheduler.Policy
	spoil fault
}

func (f faulty) Decide(_ context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	return f.spoil(f.sound, s)
}

// faultVar is the environment variable with the fault of TestFaulty, which runs in a
// separate process.
const faultVar = "PACER_POLICY_FAULT"

// TestConformanceFindsFaults checks that the suite fails with every fault, and names it.
func TestConformanceFindsFaults(t *testing.T) {
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFault(t, "TestFaulty", name, f.says)
		})
	}
}

// wantFault runs a test with a fault, which has to fail with a text. The seed is fixed: a few draws may show a fault by
// another text, or not at all.
func wantFault(t *testing.T, test, fault, says string) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the suite once for each fault")
	}
	out, err := runFault("^"+test+"$", fault, "-rapid.checks=100", "-rapid.seed=2", "-rapid.nofailfile", "-rapid.shrinktime=1s")
	wantText(t, out, err != nil, says)
}

// runFault runs tests with a fault in a process of its own.
func runFault(run, fault string, args ...string) (out string, err error) {
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=" + run, "-test.timeout=10m"}, args...)...)
	cmd.Env = append(os.Environ(), faultVar+"="+fault)
	b, err := cmd.CombinedOutput()
	return string(b), err
}

func wantText(t *testing.T, out string, ended bool, says string) {
	t.Helper()
	if !ended || !strings.Contains(out, says) {
		t.Errorf("want an output with %q:\n%.3000s", says, out)
	}
}

func TestFaulty(t *testing.T) {
	f, ok := faults[os.Getenv(faultVar)]
	if !ok {
		return // it runs in a process of TestConformanceFindsFaults
	}
	schedulertest.Conformance(t, func(o scheduler.Oracle) (scheduler.Policy, error) {
		p, err := builtin.Policies.New(policy.Spec{Name: "fifo-backfill"}, policy.Deps{Oracle: o})
		return faulty{p, f.make()}, err
	})
}
