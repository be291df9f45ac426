package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// fairShare compares the completion times of a run with those of each job alone.
type fairShare struct {
	figures
	worst, p99 float64 // completion time over start and run time alone as submitted
}

// shareOf summarizes a run. The time alone includes a start, 260 s, so that the ratio of a short
// job is not dominated by it.
func (b testbed) shareOf(tb testing.TB, r *sim.Result) fairShare {
	tb.Helper()
	r.TimeAlone(tb.Context(), sim.Config{Cluster: b.cluster, Truth: sim.Predicted{Predictor: b.truth, Cluster: b.cluster}})
	var ratios []float64
	for _, j := range r.Jobs {
		if j.Finished && j.Alone > 0 {
			ratios = append(ratios, j.JCT().Seconds()/(j.Alone+260*time.Second).Seconds())
		}
	}
	slices.Sort(ratios)
	return fairShare{summarize(r), ratios[len(ratios)-1], ratios[len(ratios)*99/100]}
}

// TestPacerFairness runs base, as it is and with moved arrivals, at several settings of fairness.
// From one end to the other the worst ratio falls by at least a quarter.
func TestPacerFairness(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	const seeds = 5
	var table strings.Builder
	table.WriteString("| trace | fairness | average JCT | longest | worst ratio | 99 % of ratios | makespan | restarts per job |\n|---|---|---|---|---|---|---|---|\n")
	worst := map[string]float64{}
	for _, trace := range []string{"base", "base, moved"} {
		for _, fairness := range []string{"0", "0.25", "0.5", "0.75", "0.9"} {
			var avg, longest, ratio, p99, span, restarts []float64
			for seed := range uint64(seeds) {
				jobs := b.jobs(t, "base", 1)
				if trace != "base" {
					jobs = moved(jobs, seed)
				}
				f := b.shareOf(t, b.runSeed(t, "pacer:fairness="+fairness, jobs, b.truth, seed))
				if f.Finished != len(jobs) {
					t.Errorf("%s, fairness %s, seed %d: %d of %d jobs finished", trace, fairness, seed, f.Finished, len(jobs))
				}
				avg, longest = append(avg, float64(f.AvgJCT)), append(longest, float64(f.MaxJCT))
				ratio, p99 = append(ratio, f.worst), append(p99, f.p99)
				span, restarts = append(span, float64(f.Makespan)), append(restarts, float64(f.Restarts)/float64(f.Jobs))
			}
			with := func(x []float64, format string) string {
				i := report.StudentT(x, 0.95)
				return fmt.Sprintf(format+" ± "+format, i.Mean, i.Hi-i.Mean)
			}
			worst[trace+fairness] = float64(report.StudentT(ratio, 0.95).Mean)
			fmt.Fprintf(&table, "| %s | %s | %s s | %s s | %s | %s | %s s | %.2f |\n", trace, fairness, with(avg, "%.0f"), with(longest, "%.0f"),
				with(ratio, "%.1f"), with(p99, "%.1f"), with(span, "%.0f"), float64(report.StudentT(restarts, 0.95).Mean))
		}
		if worst[trace+"0.9"] > 0.75*worst[trace+"0"] {
			t.Errorf("%s: the worst ratio is %.1f at fairness 0.9 and %.1f at 0, want three quarters at most", trace, worst[trace+"0.9"], worst[trace+"0"])
		}
	}
	t.Logf("\n%s", table.String())
}
