package live

import (
	"testing"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// TestPace: only the time between two changes of the steps counts, within one run that does not go back.
func TestPace(t *testing.T) {
	var p pace
	start := time.Unix(0, 0)
	for i, c := range []struct {
		run, at    int64
		done, want float64 // steps/s over at least 60 s
	}{
		{1, 0, 100, 0},
		{1, 50, 100, 0},
		{1, 55, 120, 0},    // the first change
		{1, 110, 140, 0},   // 55 s after it
		{1, 155, 320, 2},   // 200 steps in 100 s
		{1, 1000, 320, 2},  // not reported since
		{1, 1010, 300, 0},  // back at a checkpoint
		{1, 1020, 310, 0},  // the first change
		{1, 1120, 410, 1},  // 100 steps in 100 s
		{2, 1130, 410, 0},  // another run
		{2, 1140, 420, 0},  //
		{2, 1200, 450, .5}, // 30 steps in 60 s
	} {
		p.see(c.run, start.Add(time.Duration(c.at)*time.Second), c.done)
		if got := p.rate(time.Minute); got != c.want {
			t.Errorf("%d: %g steps/s, want %g", i, got, c.want)
		}
	}
}

// TestRan: progress counts from the first change of the reported steps to the last, and anew for another run or after a
// step back. Reports that repeat change nothing.
func TestRan(t *testing.T) {
	var p pace
	for _, report := range []struct {
		run, sec int64
		done     float64
		want     scheduler.Ran
	}{
		{1, 10, 5, scheduler.Ran{}}, // when these steps were done is not known
		{1, 20, 5, scheduler.Ran{}},
		{1, 60, 35, scheduler.Ran{}},
		{1, 70, 35, scheduler.Ran{}},
		{1, 120, 65, scheduler.Ran{Steps: 30, Time: time.Minute}},
		{1, 170, 65, scheduler.Ran{Steps: 30, Time: time.Minute}},
		{1, 180, 95, scheduler.Ran{Steps: 60, Time: 2 * time.Minute}},
		{1, 190, 80, scheduler.Ran{}},
		{1, 240, 110, scheduler.Ran{}},
		{1, 300, 140, scheduler.Ran{Steps: 30, Time: time.Minute}},
		{2, 310, 150, scheduler.Ran{}},
	} {
		p.see(report.run, time.Unix(report.sec, 0), report.done)
		if got := p.ran(); got != report.want {
			t.Errorf("%d s: %+v, want %+v", report.sec, got, report.want)
		}
	}
}

// TestObservedProgress: a job has observed progress while it runs as its target says and reports its steps. Progress that the
// controller estimates is none.
func TestObservedProgress(t *testing.T) {
	want := scheduler.Ran{Steps: 30, Time: time.Minute}
	for name, c := range map[string]struct {
		change func(j *job)
		want   scheduler.Ran
	}{
		"reports":           {func(*job) {}, want},
		"another target":    {func(j *job) { j.want.Plan = "dp=2" }, scheduler.Ran{}},
		"it does not run":   {func(j *job) { j.observed.Phase = Held }, scheduler.Ran{}},
		"without reports":   {func(j *job) { j.observed.Done = -1 }, scheduler.Ran{}},
		"went back, a step": {func(j *job) { j.observed.Done = 20 }, scheduler.Ran{}},
	} {
		j := &job{work: 1000}
		j.observed.Phase = Running
		j.want = Record{RunGeneration: 1, Plan: "dp=1", RunPlan: "dp=1", Slots: Slots{"n": 1}, RunSlots: Slots{"n": 1}}
		at := func(sec int64, done float64) {
			j.observed.Done = done
			new(Controller).progress(t.Context(), time.Unix(sec, 0), j, true, time.Minute)
		}
		at(0, 10)
		at(60, 20)
		at(120, 50)
		if j.state.Ran != want {
			t.Fatalf("%+v, want %+v", j.state.Ran, want)
		}
		c.change(j)
		new(Controller).progress(t.Context(), time.Unix(130, 0), j, j.observed.Phase == Running, time.Minute)
		if j.state.Ran != c.want {
			t.Errorf("%s: %+v, want %+v", name, j.state.Ran, c.want)
		}
	}
}
