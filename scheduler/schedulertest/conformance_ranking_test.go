package schedulertest_test

import (
	"context"
	"iter"
	"os"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/order"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// patience is the wait after which a job gets a bonus in rankingFaults.
const patience = 10 * time.Minute

// rankingFaults are faulty rankings with the error of the suite.
var rankingFaults = map[string]struct {
	ranking order.Ranking
	says    string
}{
	"Steady, and keys rise as jobs run":   {order.Ranking{Key: byAttained, Steady: true, Quantum: patience}, "while it holds devices: leave out Steady"},
	"Steady, and keys fall as jobs wait":  {order.Ranking{Key: withBonus((*scheduler.JobState).LongestWait), Steady: true}, "while it waits: leave out Steady"},
	"Steady with Wake":                    {order.Ranking{Key: byAttained, Steady: true, Wake: wakeForBonus}, "a Ranking with Steady has a Wake"},
	"keys rise as jobs run without Wake":  {order.Ranking{Key: byAttained, Quantum: patience}, "without an event and before the wake-up, as there is none: Decision.Wake is missing"},
	"keys fall as jobs wait without Wake": {order.Ranking{Key: withBonus((*scheduler.JobState).LongestWait)}, "without an event and before the wake-up, as there is none: Decision.Wake is missing"},
	"a bonus for waiting is lost when the job starts": {order.Ranking{Key: withBonus(presentWait), Wake: wakeForBonus, Quantum: patience},
		"changes the grant of job"},
	"jobs preempt each other without a quantum": {order.Ranking{Key: byAttained}, "events per job at"},
}

// A bonus for waiting that lasts, with its wake-up, conforms.
func TestConformanceLastingBonus(t *testing.T) {
	schedulertest.Conformance(t, makeRanking(order.Ranking{Key: withBonus((*scheduler.JobState).LongestWait), Wake: wakeForBonus}))
}

func byAttained(_ context.Context, _ *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
	return j.Attained, nil
}

// withBonus orders jobs by devices, most first, after those that waited for patience.
func withBonus(wait func(*scheduler.JobState, time.Duration) time.Duration) func(context.Context, *scheduler.Snapshot, *scheduler.JobState) (float64, error) {
	return func(_ context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
		if wait(j, s.Now) >= patience {
			return -1000, nil
		}
		return -float64(j.Job.Devices), nil
	}
}

func presentWait(j *scheduler.JobState, now time.Duration) time.Duration {
	if j.Grant != nil {
		return 0
	}
	return now - j.Since
}

// wakeForBonus returns when the next waiting job gets its bonus.
func wakeForBonus(s *scheduler.Snapshot, jobs iter.Seq[*order.Entry]) time.Duration {
	at := policy.Never
	for r := range jobs {
		if t := r.WaitsSince(s) + patience; r.Grant == nil && t > s.Now {
			at = min(at, t)
		}
	}
	return at
}

func makeRanking(r order.Ranking) schedulertest.Maker {
	return func(o scheduler.Oracle) (scheduler.Policy, error) {
		return order.Preemptive(policy.Deps{Oracle: o, Audit: true}, r)
	}
}

// The suite finds every faulty ranking, and its error names the fault.
func TestConformanceFindsFaultyRankings(t *testing.T) {
	for name, f := range rankingFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFault(t, "TestFaultyRanking", name, f.says)
		})
	}
}

func TestFaultyRanking(t *testing.T) {
	f, ok := rankingFaults[os.Getenv(faultVar)]
	if !ok {
		return // it runs in a process of TestConformanceFindsFaultyRankings
	}
	schedulertest.Conformance(t, makeRanking(f.ranking))
}

// The suite finds a fault at a value of an option that is not the default.
func TestConformanceFindsFaultyOptions(t *testing.T) {
	wantFault(t, "TestFaultyOption", "quantum", "TestFaultyOption/quantum=1")
}

func TestFaultyOption(t *testing.T) {
	if os.Getenv(faultVar) != "quantum" {
		return // it runs in a process of TestConformanceFindsFaultyOptions
	}
	options := []policy.Option{{Name: "backfill", Default: "true"}, {Name: "quantum", Default: "0", Unit: "s", Max: 1e6}}
	schedulertest.ConformanceOptions(t, options, func(set map[string]string) schedulertest.Maker {
		return makeRanking(order.Ranking{Key: byAttained, Steady: set["quantum"] != ""})
	})
}
