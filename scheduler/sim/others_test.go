package sim_test

import (
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// TestOthers: others that want a node wait for the job on it, and get its devices before the next one does. Until they give
// a part of them back no job starts there.
func TestOthers(t *testing.T) {
	c := config(firstFit, job("a", 0, 4, 200), job("b", 10*s, 4, 200), job("c", 10*s, 2, 100))
	c.Cluster.Groups[0].Count, c.Audit = 1, true
	c.Others = []sim.Occupation{{At: 20 * s, Slot: scheduler.Slot{Devices: 3}}, {At: 100 * s, Slot: scheduler.Slot{Devices: 2}}, {At: 110 * s, Slot: scheduler.Slot{}}}
	got := lines(&c)
	mustRun(t, c)
	want := []string{
		"0s submitted a", "0s started a [{0 4}]", "10s submitted b", "10s submitted c", "1m0s completed a [{0 4}]",
		"1m40s started c [{0 2}]", "2m40s completed c [{0 2}]", "2m40s started b [{0 4}]", "3m40s completed b [{0 4}]",
	}
	if diff := gocmp.Diff(want, *got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestOthersTakeParts: others take what is free at once and the rest when it gets free, also of a node that was down.
func TestOthersTakeParts(t *testing.T) {
	c := config(firstFit, job("a", 0, 2, 100), job("b", 10*s, 2, 100), job("c", 10*s, 1, 200))
	c.Cluster.Groups[0].Count, c.Audit = 1, true
	c.Failures = sim.OutageTable{0: {{Down: 80 * s, Up: 90 * s}}}
	c.Others = []sim.Occupation{{At: 5 * s, Slot: scheduler.Slot{Devices: 3}}, {At: 110 * s, Slot: scheduler.Slot{Devices: 1}}}
	got := lines(&c)
	mustRun(t, c)
	want := []string{
		"0s submitted a", "0s started a [{0 2}]", "10s submitted b", "10s submitted c", "1m0s completed a [{0 2}]", "1m0s started c [{0 1}]",
		"1m20s down node 0", "1m20s failed c node 0 [{0 1}]", "1m30s up node 0", "1m30s started c [{0 1}]",
		"1m50s started b [{0 2}]", "2m50s completed b [{0 2}]", "5m0s completed c [{0 1}]",
	}
	if diff := gocmp.Diff(want, *got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestCancel: users cancel a job that runs, one that waits, one that ended before, and one at its submission.
func TestCancel(t *testing.T) {
	c := config(firstFit, job("a", 0, 4, 200), job("b", 10*s, 4, 200), job("c", 10*s, 4, 200), job("d", 20*s, 4, 200))
	c.Cluster.Groups[0].Count, c.Audit = 1, true
	c.Cancel = map[spec.JobID]time.Duration{"a": 30 * s, "b": 500 * s, "c": 40 * s, "d": 20 * s}
	got := lines(&c)
	r := mustRun(t, c)
	want := []string{
		"0s submitted a", "0s started a [{0 4}]", "10s submitted b", "10s submitted c", "20s cancelled d",
		"30s cancelled a [{0 4}]", "30s started b [{0 4}]", "40s cancelled c", "1m30s completed b [{0 4}]",
	}
	if diff := gocmp.Diff(want, *got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for i, want := range []string{"cancelled after 30s", "", "cancelled after 30s", "cancelled after 0s"} {
		if j := r.Jobs[i]; j.Unfinished != want || j.Cancelled != (want != "") || j.Finished != (want == "") {
			t.Errorf("job %s: %+v", j.Job.ID, j)
		}
	}
	if a := r.Jobs[0]; a.End != 30*s || a.Attained != 120 || a.Restarts != 0 {
		t.Errorf("%+v", a)
	}
}

// TestOthersErrors: what others occupy must exist, in order.
func TestOthersErrors(t *testing.T) {
	for _, tc := range []struct {
		others []sim.Occupation
		want   string
	}{
		{[]sim.Occupation{{Slot: scheduler.Slot{Node: 2}}}, "others on node 2, the cluster has 2"},
		{[]sim.Occupation{{Slot: scheduler.Slot{Devices: 5}}}, "others on node 0 at 0s have 5 devices"},
		{[]sim.Occupation{{At: 2 * s}, {At: s}}, "others on node 0 at 1s have 0 devices"},
	} {
		c := config(firstFit, job("a", 0, 4, 200))
		c.Others = tc.others
		if _, err := sim.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: error %v, want %s", tc.others, err, tc.want)
		}
	}
}
