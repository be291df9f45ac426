package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// roundoff bounds the rounding errors of figures: sums of at most a few hundred
// terms of up to 1e6 s, each with a relative error of 1e-16.
var roundoff = cmp.Comparer(func(a, b Number) bool {
	return a.Defined() == b.Defined() && (!a.Defined() || math.Abs(float64(a-b)) <= 1e-12*max(1, math.Abs(float64(a))))
})

func TestSummarizeByHand(t *testing.T) {
	// Finished: jobs 1-4, completion times 40, 10, 85, 70.25 s. Held: 2 devices
	// for 90 s, 1 for 10.25 s of the 100.25 s between first submission and last
	// completion.
	got := Summarize(small()[0], Score{})
	want := Summary{
		Policy: "fifo", Jobs: 6, Finished: 4, Unfinished: 1, Rejected: 1,
		AvgJCT: 205.25 / 4, MedianJCT: 55.125, P99JCT: 85, MaxJCT: 85, Makespan: 100.25,
		DeviceHours: (40 + 10 + 80 + 45.25 + 10.25) / 3600, Restarts: 2, Preemptions: 1, Elapsed: 0.0015,
		Failures: 1, LostDeviceHours: 0.01,
		Utilisation: 190.25 / 200.5, AvgDelay: (0 + 0 + 5 + 10 + 50) / 5., MaxRho: Undefined(),
	}
	if diff := cmp.Diff(want, got, roundoff); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSummarizeScored(t *testing.T) {
	got := Summarize(small()[0], Score{First: "2", Last: "3"})
	want := Summary{
		Policy: "fifo", Jobs: 2, Finished: 2,
		AvgJCT: 47.5, MedianJCT: 47.5, P99JCT: 85, MaxJCT: 85, Makespan: 90,
		DeviceHours: 90. / 3600, Elapsed: 0.0015, Utilisation: 1, AvgDelay: 2.5, MaxRho: Undefined(),
	}
	if diff := cmp.Diff(want, got, roundoff); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSummarizeNothingFinished(t *testing.T) {
	got := Summarize(small()[0], Score{First: "5", Last: "6"})
	want := Summary{
		Policy: "fifo", Jobs: 2, Unfinished: 1, Rejected: 1,
		AvgJCT: Undefined(), MedianJCT: Undefined(), P99JCT: Undefined(), MaxJCT: Undefined(),
		Makespan: Undefined(), Utilisation: Undefined(), DeviceHours: 10.25 / 3600, Elapsed: 0.0015,
		MaxRho:   Undefined(),
		AvgDelay: 50, // of the job that ran and did not finish
	}
	if diff := cmp.Diff(want, got, roundoff); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestSummarizeShifted moves a run in time and lists its jobs in another order:
// no figure changes.
func TestSummarizeShifted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		n := rapid.IntRange(1, 80).Draw(t, "jobs")
		by := time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "by"))
		a, b := result("p", seed, n, 16, true), result("p", seed, n, 16, true)
		for i := range b.Jobs {
			b.Jobs[i].Job.Submit += by
			b.Jobs[i].Start += by
			b.Jobs[i].End += by
		}
		for i := range b.Usage {
			b.Usage[i].At += by
		}
		slices.Reverse(b.Jobs)
		if diff := cmp.Diff(Summarize(a, Score{}), Summarize(b, Score{}), roundoff); diff != "" {
			t.Fatalf("shifted by %v:\n%s", by, diff)
		}
	})
}

// TestUtilisationAgreesWithJobs compares the usage with the device-seconds of jobs.
func TestUtilisationAgreesWithJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := result("p", rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "jobs"), 16, rapid.Bool().Draw(t, "backfill"))
		s := Summarize(r, Score{})
		fromJobs := float64(s.DeviceHours) * 3600 / float64(s.Makespan) / 16
		if math.Abs(float64(s.Utilisation)-fromJobs) > 1e-9 {
			t.Fatalf("utilisation %v, by the jobs %v", s.Utilisation, fromJobs)
		}
	})
}

func BenchmarkSummarize(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			r := manyJobs(n)
			for b.Loop() {
				Summarize(r, Score{First: "10", Last: "999990"})
			}
		})
	}
}

// manyJobs returns a run of n jobs.
func manyJobs(n int) *sim.Result {
	r := &sim.Result{Policy: "many", Devices: 1000}
	for i := range n {
		at := time.Duration(i) * time.Second
		r.Jobs = append(r.Jobs, job(fmt.Sprint(i), at, at, at+time.Duration(1+i*7919%100_000)*time.Second))
		r.Usage = append(r.Usage, sim.Usage{At: at, Held: i % 1000, Waiting: i % 13})
	}
	return r
}

// TestLearned compares a run with a belief that learns with the same policy's run with
// perfect belief. Without one the cost is undefined.
func TestLearned(t *testing.T) {
	run := func(policy string, jct time.Duration, l *scheduler.Learned) *sim.Result {
		return &sim.Result{Policy: policy, Devices: 1, Learned: l, Jobs: []sim.JobRecord{{Finished: true, Scored: true, End: jct}}}
	}
	learned := &scheduler.Learned{Seen: 3, Known: 2, MAPE: 0.25, Fits: 4, Unfit: 1}
	runs := SummarizeAll([]*sim.Result{
		run("a", 150*time.Second, learned), run(PerfectName("a"), 120*time.Second, nil), run("b", time.Second, &scheduler.Learned{Seen: 1}),
	}, Score{})
	want := &Learned{Seen: 3, Known: 2, Fits: 4, Unfit: 1, MAPE: 0.25, CostAvgJCT: 0.25, CostMakespan: 0.25}
	if diff := cmp.Diff(want, runs[0].Learned); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if runs[1].Learned != nil {
		t.Error("perfect belief learns")
	}
	if b := runs[2].Learned; b.MAPE.Defined() || b.CostAvgJCT.Defined() || b.CostMakespan.Defined() {
		t.Errorf("%+v, want figures without estimate or reference run undefined", b)
	}
	var text, csv strings.Builder
	if err := errors.Join(WriteTable(&text, runs), WriteCSV(&csv, runs)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "25.0 %") || !strings.Contains(csv.String(), ",3,2,4,1,0.25,0.25,0.25,0,0,,,,") || strings.Contains(text.String()+csv.String(), "NaN") {
		t.Errorf("%s%s", text.String(), csv.String())
	}
}

// TestGaps checks that gaps are shown for the runs with bounds.
func TestGaps(t *testing.T) {
	run := func(policy string, g sim.Gaps) *sim.Result {
		return &sim.Result{Policy: policy, Devices: 1, Gaps: g, Jobs: []sim.JobRecord{{Finished: true, Scored: true, End: time.Second}}}
	}
	runs := SummarizeAll([]*sim.Result{run("a", sim.Gaps{Decisions: 3, Mean: 0.0125, Worst: 0.5}), run("b", sim.Gaps{})}, Score{})
	if diff := cmp.Diff(&Gaps{Decisions: 3, Mean: 0.0125, Worst: 0.5}, runs[0].Gaps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if runs[1].Gaps != nil {
		t.Error("a gap where nothing was proven")
	}
	var text, csv strings.Builder
	if err := errors.Join(WriteTable(&text, runs), WriteCSV(&csv, runs)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "1.2 %     50.0 %") || !strings.Contains(csv.String(), ",3,0.0125,0.5,") || !strings.HasSuffix(csv.String(), ",,,,\n") {
		t.Errorf("%s%s", text.String(), csv.String())
	}
}
