package sim_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Node 0 is in maintenance from 50 s to 200 s, and b holds node 1. a starts in 10 s, trains 40 s
// at 4 steps/s, and resumes with its 160 steps when b leaves at 60 s. It pays launch, restore and
// the checkpoint.
func TestMaintenance(t *testing.T) {
	c := config(firstFit, job("a", 0, 4, 200), job("b", 0, 4, 200))
	c.Costs = &sim.CostTable{Others: &sim.ModelCosts{Launch: 10 * s, Checkpoint: 2 * s, Restore: 5 * s}}
	c.Maintenance = sim.OutageTable{0: {{Down: 50 * s, Up: 200 * s, Notice: sim.Planned}}}
	got := lines(&c)
	r := mustRun(t, c)
	want := []string{
		"0s submitted a", "0s submitted b", "0s started a [{0 4}]", "0s started b [{1 4}]",
		"50s down node 0", "50s evicted a node 0 [{0 4}]",
		"1m0s completed b [{1 4}]", "1m0s started a [{1 4}]", "1m27s completed a [{1 4}]",
	}
	if diff := gocmp.Diff(want, *got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if a := r.Jobs[0]; a.Evictions != 1 || a.Preemptions != 1 || a.Restarts != 1 || a.Failures != 0 || a.Reclaims != 0 || a.LostSteps != 0 {
		t.Errorf("%+v", a)
	}
}

// Spot capacity is taken back at 50 s: with a notice as long as the checkpoint a job keeps its
// progress, with a shorter one it fails.
func TestSpotNotice(t *testing.T) {
	for _, tc := range []struct {
		notice              time.Duration
		evictions, failures int
		end                 time.Duration
	}{
		{0, 0, 1, 60*s + 15*s + 50*s},
		{2*s - 1, 0, 1, 60*s + 15*s + 50*s},
		{2 * s, 1, 0, 60*s + 17*s + 10*s},
	} {
		c := config(firstFit, job("a", 0, 4, 200))
		c.Cluster.Groups[0].Count = 1
		c.Costs = &sim.CostTable{Others: &sim.ModelCosts{Launch: 10 * s, Checkpoint: 2 * s, Restore: 5 * s}}
		c.Spot = sim.OutageTable{0: {{Down: 50 * s, Up: 60 * s, Notice: tc.notice}}}
		a := mustRun(t, c).Jobs[0]
		if tc.failures == 1 {
			tc.end -= 5 * s // nothing to restore
		}
		if a.Evictions != tc.evictions || a.Failures != tc.failures || a.Reclaims != 1 || a.End != tc.end {
			t.Errorf("notice %v: %d evictions, %d failures, %d reclaims, end %v; want %d, %d, 1, %v",
				tc.notice, a.Evictions, a.Failures, a.Reclaims, a.End, tc.evictions, tc.failures, tc.end)
		}
	}
}

// A waiting job does not start on a node that goes down while it would still be starting.
// Policies see a window always, and spot capacity within its notice.
func TestLeavingNodes(t *testing.T) {
	seen := map[scheduler.Leaving]time.Duration{} // since when
	p := policyFunc(func(snap *scheduler.Snapshot) scheduler.Decision {
		for _, l := range snap.Leaving {
			if _, before := seen[l]; !before {
				seen[l] = snap.Now
			}
		}
		d := firstFit(snap)
		d.Wake = snap.Now.Truncate(10*s) + 10*s
		return d
	})
	c := config(p, job("a", 0, 4, 200))
	c.Cluster.Groups[0].Count = 1
	c.Maintenance = sim.OutageTable{0: {{Down: 9 * s, Up: 20 * s, Notice: sim.Planned}}}
	got := lines(&c)
	c.Spot = sim.OutageTable{0: {{Down: 130 * s, Up: 131 * s, Notice: 60 * s}}}
	r := mustRun(t, c)
	want := []string{"0s submitted a", "9s down node 0", "20s up node 0", "20s started a [{0 4}]", "1m20s completed a [{0 4}]"}
	if diff := gocmp.Diff(want, *got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if r.Jobs[0].Restarts != 0 {
		t.Errorf("%d restarts", r.Jobs[0].Restarts)
	}
	if diff := gocmp.Diff(map[scheduler.Leaving]time.Duration{{Node: 0, At: 9 * s, Back: 20 * s}: 0, {Node: 0, At: 130 * s, Back: 131 * s}: 70 * s}, seen); diff != "" {
		t.Errorf("leaving nodes by the time they were known (-want +got):\n%s", diff)
	}
}

// A node is down while any cause has it down.
func TestOverlappingOutages(t *testing.T) {
	c := config(firstFit, job("a", 0, 4, 200))
	c.Cluster.Groups[0].Count = 1
	c.Failures = sim.OutageTable{0: {{Down: 20 * s, Up: 40 * s}}}
	c.Maintenance = sim.OutageTable{0: {{Down: 30 * s, Up: 70 * s, Notice: sim.Planned}}}
	got := lines(&c)
	mustRun(t, c)
	want := []string{"0s submitted a", "0s started a [{0 4}]", "20s down node 0", "20s failed a node 0 [{0 4}]", "1m10s up node 0",
		"1m10s started a [{0 4}]", "2m10s completed a [{0 4}]"}
	if diff := gocmp.Diff(want, *got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
