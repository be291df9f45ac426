package live

import (
	"testing"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// TestPace: progress counts from the first change of the reported steps to the last, and anew for another run or after a
// step back. Reports that repeat change nothing.
func TestPace(t *testing.T) {
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
