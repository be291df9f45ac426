package hook

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// process returns a process with steps of the given times; the first has none.
func process(rank, world int, sec ...float64) Process {
	p := Process{Rank: rank, World: world, PeakBytes: float64(rank + 1)}
	end := 100.0
	for i, s := range sec {
		if end += s; i == 0 {
			s = 0
		}
		p.Steps = append(p.Steps, Step{N: i + 1, Sec: s, End: end})
	}
	return p
}

func TestTime(t *testing.T) {
	ranks := []Process{process(0, 2, 9, 5, 1.0, 1.2, 1.0), process(1, 2, 9, 5, 1.2, 1.0, 1.0, 7)}
	got, err := Time(ranks, 2, 2, 10)
	if err != nil || !slices.EqualFunc(got.StepSec, []float64{1.1, 1.1, 1.0}, near) || got.PeakBytes != 2 || len(got.Warnings) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if s := got.Ended.Sub(got.Began).Seconds(); !near(s, 3.2) || got.Began.Unix() != 114 {
		t.Errorf("from %v to %v", got.Began, got.Ended)
	}
	if got, err = Time(ranks, 2, 2, 1); err != nil || len(got.StepSec) != 1 {
		t.Errorf("one step: %+v, %v", got, err)
	}
	apart := []Process{process(0, 2, 1, 1, 1, 1, 1, 1, 1), process(1, 2, 1, 2, 2, 2, 2, 2, 2)}
	if got, err = Time(apart, 2, 1, 9); err != nil || len(got.Warnings) != 1 {
		t.Errorf("ranks apart: %+v, %v", got, err)
	}
	// Rank 1 ends the warm-up 0.9 s after rank 0, and the last step 0.9 s before it.
	together := []Process{process(0, 2, 1, 1, 1, 1, 1, 1, 1.9), process(1, 2, 1.9, 0.1, 1, 1, 1, 1, 1)}
	if got, err = Time(together, 2, 1, 9); err != nil || len(got.Warnings) != 0 {
		t.Errorf("ranks together: %+v, %v", got, err)
	}
	// A helper that stepped a little before the training is not the training.
	if got, err = Time([]Process{process(0, 1, 1, 1), process(0, 1, 1, 3, 3, 3)}, 1, 1, 9); err != nil || len(got.StepSec) != 3 {
		t.Errorf("two processes: %+v, %v", got, err)
	}
	// Nor is one with more steps in less time, or one of a job of another size.
	evaluation := process(0, 1, slices.Repeat([]float64{0.01}, 50)...)
	if got, err = Time([]Process{process(0, 1, 1, 3, 3, 3), evaluation}, 1, 1, 0); err != nil || len(got.StepSec) != 3 {
		t.Errorf("beside an evaluation: %d steps, %v", len(got.StepSec), err)
	}
	if got, err = Time([]Process{ranks[0], evaluation, ranks[1]}, 2, 2, 10); err != nil || len(got.StepSec) != 3 {
		t.Errorf("beside an evaluation on one rank: %d steps, %v", len(got.StepSec), err)
	}
	for _, c := range []struct {
		all    []Process
		n      int
		warmup int
		want   string
	}{
		{nil, 1, 1, "0 ranks stepped an optimizer, want 1; a command that sets PYTHONPATH must keep what it was"},
		{ranks, 1, 1, "the job has 2 ranks (WORLD_SIZE), want 1"},
		{ranks[:1], 2, 1, "1 ranks stepped an optimizer, want 2"},
		{ranks, 2, 5, "5 training steps, want more than the 5 of the warm-up"},
	} {
		if _, err := Time(c.all, c.n, c.warmup, 9); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
