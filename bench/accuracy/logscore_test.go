package accuracy

import (
	"math"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// logScore returns the mean log density of measured times of some rows under normal predictions of their logarithm.
func logScore(all map[string]prediction, of []prediction) (mean float64) {
	for _, p := range of {
		a := all[p.id]
		sd := math.Log(a.hi/a.lo) / 2 / stats.Normal90
		z := math.Log(a.want/a.got) / sd
		mean -= (math.Log(sd) + z*z/2) / float64(len(of))
	}
	return mean
}

// TestRowsImproveTheLogScore: on random subsets of sources, more rows do not make the log score of the others worse in
// expectation: of no source after 10 rows, and of all sources after each step to 10. Scores are compared on the same rows,
// and may be lower by two standard errors.
func TestRowsImproveTheLogScore(t *testing.T) {
	b := newBenchWith(t.Context(), Options{Shared: spectest.Shared(t), Seed: 5}, &trained)
	c, err := Lookup("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	steps := make([][]float64, len(scoredAfter)-1) // means of sources
	for _, dir := range []string{publishedDir, fieldDir} {
		tables, err := b.read(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range tables.sources {
			if rows := tables.usable[s]; len(rows) >= 20 {
				for i, gain := range scoreRows(t, b, c, s, rows) {
					steps[i] = append(steps[i], gain)
				}
			}
		}
	}
	for i, gains := range steps {
		if g := spreadOf(gains); len(gains) < 5 || g.Value < -2*g.SE {
			t.Errorf("%d sources: %d rows change the log score by %.3f, with a standard error of %.3f", len(gains), scoredAfter[i+1], g.Value, g.SE)
		}
	}
}

// scoredAfter are the numbers of rows after which log scores are compared.
var scoredAfter = []int{0, 1, 3, 10}

// scoreRows returns the mean change of the log score from each number of rows to the next.
func scoreRows(t *testing.T, b *Bench, c Contender, source string, rows []spec.Measurement) []float64 {
	t.Helper()
	steps, totals := make([]float64, len(scoredAfter)-1), []float64{}
	for draw := range randomDraws {
		perm := (&curveDraw{source: source, draw: draw}).random(b.Seed).Perm(len(rows))
		var before map[string]prediction
		total := 0.0
		for i, k := range scoredAfter {
			shown, hidden := slices.Sorted(slices.Values(perm[:k])), slices.Sorted(slices.Values(perm[k:]))
			predictions, err := b.conditioned(c, source, rows, shown, hidden)
			if err != nil {
				t.Fatal(err)
			}
			now := map[string]prediction{}
			predictions = slices.DeleteFunc(predictions, func(p prediction) bool { return p.err != nil })
			for _, p := range predictions {
				now[p.id] = p
			}
			if before != nil {
				gain := logScore(now, predictions) - logScore(before, predictions)
				steps[i-1] += gain / randomDraws
				total += gain
			}
			before = now
		}
		totals = append(totals, total)
	}
	g := spreadOf(totals)
	t.Logf("%s: log score by step %+.3f, in all %+.3f, standard error %.3f", source, steps, g.Value, g.SE)
	if g.Value < -2*g.SE {
		t.Errorf("%s: the log score after %d rows is %.3f lower, with a standard error of %.3f", source, slices.Max(scoredAfter), -g.Value, g.SE)
	}
	return steps
}
