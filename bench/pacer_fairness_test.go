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
func (b testbed) shareOf(tb testing.TB, run *sim.Result) fairShare {
	tb.Helper()
	r := *run
	r.Jobs = slices.Clone(run.Jobs)
	r.TimeAlone(tb.Context(), sim.Config{Cluster: b.cluster, Truth: sim.Predicted{Predictor: b.truth, Cluster: b.cluster}})
	var ratios []float64
	for _, j := range r.Jobs {
		if j.Finished && j.Alone > 0 {
			ratios = append(ratios, j.JCT().Seconds()/(j.Alone+260*time.Second).Seconds())
		}
	}
	slices.Sort(ratios)
	return fairShare{summarize(&r), ratios[len(ratios)-1], ratios[len(ratios)*99/100]}
}

// fairTraces are the workloads of the fairness table: base, as it is and with moved arrivals.
var fairTraces = []string{"base", "base, shifted"}

// fairRuns runs a trace at a setting of fairness with 5 seeds. All jobs must finish.
func (b testbed) fairRuns(tb testing.TB, trace, fairness string) (runs []fairShare) {
	tb.Helper()
	for seed := range uint64(5) {
		jobs := b.jobs(tb, "base", 1)
		if trace != "base" {
			jobs = moved(jobs, seed)
		}
		var r *sim.Result
		if trace == "base" && fairness == "0" { // as by default
			r = b.pacerOnBase(tb, jobs, seed)
		} else {
			r = b.runSeed(tb, "pacer:fairness="+fairness, jobs, b.truth, seed)
		}
		f := b.shareOf(tb, r)
		if f.Finished != len(jobs) {
			tb.Errorf("%s, fairness %s, seed %d: %d of %d jobs finished", trace, fairness, seed, f.Finished, len(jobs))
		}
		runs = append(runs, f)
	}
	return runs
}

// mean is the mean of a figure of the runs, with its 95 % interval.
func mean(runs []fairShare, of func(fairShare) float64) report.Interval {
	var x []float64
	for _, f := range runs {
		x = append(x, of(f))
	}
	return report.StudentT(x, 0.95)
}

// TestPacerFairness: from one end of the option to the other the worst ratio falls by at least a
// quarter.
func TestPacerFairness(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	worst := func(f fairShare) float64 { return f.worst }
	for _, trace := range fairTraces {
		t.Run(trace, func(t *testing.T) {
			t.Parallel()
			none, most := mean(b.fairRuns(t, trace, "0"), worst).Mean, mean(b.fairRuns(t, trace, "0.9"), worst).Mean
			if most > 0.75*none {
				t.Errorf("the worst ratio is %.1f at fairness 0.9 and %.1f at 0, want three quarters at most", most, none)
			}
		})
	}
}

// BenchmarkPacerFairness prints the table of docs/benchmarks/joint-scheduling.md: -benchtime 1x.
func BenchmarkPacerFairness(tb *testing.B) {
	b := newTestbed(tb)
	for tb.Loop() {
		var table strings.Builder
		table.WriteString("| trace | fairness | average JCT | longest | worst ratio | 99th percentile of ratios | makespan | restarts per job |\n|---|---|---|---|---|---|---|---|\n")
		for _, trace := range fairTraces {
			for _, fairness := range []string{"0", "0.25", "0.5", "0.75", "0.9"} {
				runs := b.fairRuns(tb, trace, fairness)
				with := func(format string, of func(fairShare) float64) string {
					i := mean(runs, of)
					return fmt.Sprintf(format+" ± "+format, i.Mean, i.Hi-i.Mean)
				}
				restarts := mean(runs, func(f fairShare) float64 { return float64(f.Restarts) / float64(f.Jobs) }).Mean
				fmt.Fprintf(&table, "| %s | %s | %s s | %s s | %s | %s | %s s | %.2f |\n", trace, fairness,
					with("%.0f", func(f fairShare) float64 { return float64(f.AvgJCT) }), with("%.0f", func(f fairShare) float64 { return float64(f.MaxJCT) }),
					with("%.1f", func(f fairShare) float64 { return f.worst }), with("%.1f", func(f fairShare) float64 { return f.p99 }),
					with("%.0f", func(f fairShare) float64 { return float64(f.Makespan) }), float64(restarts))
			}
		}
		tb.Logf("\n%s", table.String())
	}
}
