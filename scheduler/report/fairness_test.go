package report

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// TestFairnessByHand has two devices. Job a requests one and is in the system with b
// only; b requests both and is in the system with a for half of its time. Rejected
// jobs do not count.
func TestFairnessByHand(t *testing.T) {
	s := time.Second
	a, b, none, unknown := job("a", 0, 0, 10*s), job("b", 0, 10*s, 20*s), job("c", 0, 0, 0), job("d", 30*s, 30*s, 31*s)
	a.Alone, a.Usable = 8*s, 2
	b.Alone, b.Usable, b.Job.Devices = 10*s, 2, 2
	none.Finished, none.Rejected, none.Alone, none.Usable = false, "no", s, 2
	r := &sim.Result{Devices: 2, Jobs: []sim.JobRecord{a, b, none, unknown}}
	got := isolatedTimes(r)
	want := []Number{
		8,  // N = 2: its share is the one device it requests
		15, // N = (2*10 + 1*10) / 20 = 1.5: two devices for 2/3 of the time
		Undefined(), Undefined(),
	}
	if diff := cmp.Diff(want, got, roundoff); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]float64{1.25, 20. / 15}, rhos(r, Score{})); diff != "" {
		t.Errorf("rho: -want +got:\n%s", diff)
	}
	if row := newFairnessRow(r, Score{}, 1); row.Max != "1.33" || row.Above != "1.000" || row.Known != 2 || row.Unknown != 1 {
		t.Errorf("%+v", row)
	}
}

// TestJobCount checks the mean number of jobs against the sum of their overlaps.
func TestJobCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := result("p", rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "jobs"), 8, rapid.Bool().Draw(t, "backfill"))
		c := newJobCount(r)
		for _, j := range r.Jobs {
			var sum float64
			for _, o := range r.Jobs {
				sum += max(min(o.End, j.End)-max(o.Job.Submit, j.Job.Submit), 0).Seconds()
			}
			want := sum / (j.End - j.Job.Submit).Seconds()
			if got := c.mean(j.Job.Submit, j.End); math.Abs(got-want) > 1e-9*want {
				t.Fatalf("job %s: %v jobs on average, want %v", j.Job.ID, got, want)
			}
		}
	})
}

// TestFairnessOfSharing checks that n equal jobs with equal submissions, each running
// n times as long as alone, have a rho of 1.
func TestFairnessOfSharing(t *testing.T) {
	r := &sim.Result{Devices: 4}
	for _, id := range []spec.JobID{"1", "2", "3", "4", "5"} {
		j := job(string(id), 0, 0, 500*time.Second)
		j.Job.Devices, j.Alone, j.Usable = 4, 100*time.Second, 4
		r.Jobs = append(r.Jobs, j)
	}
	for _, rho := range rhos(r, Score{}) {
		if math.Abs(rho-1) > 1e-12 {
			t.Errorf("rho %v, want 1", rho)
		}
	}
}
