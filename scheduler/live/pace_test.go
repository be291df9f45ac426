package live

import (
	"testing"
	"time"
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
