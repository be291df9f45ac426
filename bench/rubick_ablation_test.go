package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// fitRubickDrawn is fitRubick on other rows for every seed: of 16 configurations
// drawn per model at most 8 are fitted.
func fitRubickDrawn(tb testing.TB, seed uint64) fitted {
	tb.Helper()
	f, err := family.Lookup("rubick")
	if err != nil {
		tb.Fatal(err)
	}
	out := fitted{}
	for key, rows := range perfmodel.GroupByKey(importAll(tb, "rubick")) {
		rows = drawRows(rows, key, seed)
		m, _, err := perfmodel.FitKey(context.Background(), f, rows, perfmodel.FitOptions{MaxRows: 8})
		if err != nil {
			tb.Fatalf("%s, seed %d: %v", key, seed, err)
		}
		out[key] = m
	}
	return out
}

// drawRows returns 16 of the usable rows, all if there are fewer.
func drawRows(rows []spec.Measurement, key spec.Key, seed uint64) (drawn []spec.Measurement) {
	for _, r := range rows {
		if perfmodel.Usable(r) {
			drawn = append(drawn, r)
		}
	}
	rng := rand.New(rand.NewPCG(seed, uint64(len(key.Model))))
	rng.Shuffle(len(drawn), func(i, k int) { drawn[i], drawn[k] = drawn[k], drawn[i] })
	return drawn[:min(len(drawn), 16)]
}

// ablated sums the runs of one policy on one trace up, a value per seed.
type ablated struct {
	avg, guaranteed, span, longest, late, restarts, deviceHours []float64
}

func (a *ablated) add(r, backfill *sim.Result) {
	f := summarize(r)
	a.avg = append(a.avg, float64(f.AvgJCT))
	a.guaranteed = append(a.guaranteed, f.guaranteed)
	a.span = append(a.span, float64(f.Makespan))
	a.longest = append(a.longest, float64(f.MaxJCT))
	a.late = append(a.late, float64(later(r, backfill)))
	a.restarts = append(a.restarts, float64(f.Restarts)/float64(f.Jobs))
	a.deviceHours = append(a.deviceHours, float64(f.DeviceHours))
}

// row is a line of the table in docs/results.md, in comparison with the base.
func (a *ablated) row(trace, pol string, base *ablated) string {
	with := func(x []float64, unit string) string {
		i := report.StudentT(x, 0.95)
		return fmt.Sprintf("%.0f ± %.0f%s", i.Mean, i.Hi-i.Mean, unit)
	}
	times := func(x, y []float64) string {
		i := report.RatioT(y, x, 0.95)
		return fmt.Sprintf("%.2f (%.2f-%.2f)", i.Mean, i.Lo, i.Hi)
	}
	late := "-"
	if trace == "mt" {
		late = fmt.Sprintf("%.1f", mean(a.late))
	}
	return fmt.Sprintf("| %s | `%s` | %s | %s | %s | %s | %.0f s | %.2f | %.0f | %s |\n", trace, pol, with(a.avg, " s"), times(a.avg, base.avg),
		with(a.span, " s"), times(a.span, base.span), mean(a.longest), mean(a.restarts), mean(a.deviceHours), late)
}

// TestRubickAblations runs rubick and what is left of it without the choice of
// plans, of resources, and of both, on Rubick's traces. With every seed other
// rows are fitted, at most 8 per model; all policies know the steps that remain.
// If PACER_TABLE names a file, that gets the table, with rivals in it.
func TestRubickAblations(t *testing.T) {
	b := newTestbed(t)
	const seeds = 5
	var beliefs [seeds]fitted
	for seed := range beliefs {
		beliefs[seed] = fitRubickDrawn(t, uint64(seed))
	}
	policies := []string{"rubick-n", "rubick-e", "rubick-r", "rubick"}
	file := os.Getenv("PACER_TABLE")
	if file != "" {
		policies = append(policies, "fifo-backfill", "optimus-oracle", "sia", "pacer")
	}
	var table strings.Builder
	table.WriteString("| trace | policy | average JCT | of `rubick-n` | makespan | of `rubick-n` | longest JCT | restarts per job | device-hours | guaranteed late |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n")
	got := map[string]*ablated{}
	for _, trace := range []string{"base", "bp", "mt"} {
		jobs := b.jobs(t, trace, 1)
		backfill := b.run(t, "fifo-backfill", jobs, b.truth)
		for _, pol := range policies {
			a := &ablated{}
			for seed, belief := range beliefs {
				r := b.runSeed(t, pol, jobs, belief, uint64(seed))
				if n := summarize(r).Finished; n != len(jobs) {
					t.Errorf("%s on %s: %d of %d jobs finished", pol, trace, n, len(jobs))
				}
				a.add(r, backfill)
			}
			got[trace+" "+pol] = a
			table.WriteString(a.row(trace, pol, got[trace+" rubick-n"]))
		}
	}
	t.Logf("\n%s", table.String())
	for _, trace := range []string{"base", "bp"} {
		whole := got[trace+" rubick"]
		if avg, span, restarts := mean(whole.avg), mean(whole.span), mean(whole.restarts); avg > 2500 || span > 68000 || restarts > 0.5 {
			t.Errorf("rubick on %s: %.0f s, %.0f s, %.2f restarts per job, want at most 2500, 68,000 and 0.5", trace, avg, span, restarts)
		}
		for _, less := range policies[:3] {
			part := got[trace+" "+less]
			if j := report.RatioT(part.avg, whole.avg, 0.95); !(j.Hi < 1) {
				t.Errorf("%s: the mean completion time of rubick is %.2f (%.2f-%.2f) of that of %s, want less with 95 %% confidence", trace, j.Mean, j.Lo, j.Hi, less)
			}
			if m := report.RatioT(part.span, whole.span, 0.95); !(m.Hi < 1) {
				t.Errorf("%s: the makespan of rubick is %.2f (%.2f-%.2f) of that of %s, want less with 95 %% confidence", trace, m.Mean, m.Lo, m.Hi, less)
			}
		}
	}
	if file != "" {
		if err := os.WriteFile(file, []byte(table.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func mean(x []float64) float64 { return float64(report.StudentT(x, 0.95).Mean) }
