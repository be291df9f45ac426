package hybrid

import (
	"context"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestCalibratedWidthsOfOtherSites: rows of one site do not narrow the intervals of another.
func TestCalibratedWidthsOfOtherSites(t *testing.T) {
	rows := hybridRows(t, 60, 1.2, 0.02)
	h := condition(t, rows)
	half := func(p perfmodel.Predictor, c spec.Config) float64 {
		_, lo, hi := secondsOf(t, p, c)
		return math.Log(hi/lo) / 2
	}
	own := rows[3].Config
	if before, after := half(Shipped(), own), half(h, own); after > before/2 {
		t.Errorf("where the rows are from: half width %.3f, %.3f without them", after, before)
	}
	for _, s := range append(analytic.Shipped().Sites, analytic.Site{Framework: "another", Accelerator: "B"}) {
		c := own
		c.Framework, c.Accelerator.Name = perftest.Stack(s.Framework), s.Accelerator
		if before, after := half(Shipped(), c), half(h, c); after < 0.998*before { // its constants move a little
			t.Errorf("%s on %s: half width %.3f with rows of another site, %.3f without them", s.Framework, s.Accelerator, after, before)
		}
		before, _, _ := secondsOf(t, Shipped(), c)
		if after, _, _ := secondsOf(t, h, c); s.Framework != "another" && math.Abs(math.Log(after/before)) > 0.02 {
			t.Errorf("%s on %s: %g s with rows of another site, %g without them", s.Framework, s.Accelerator, after, before)
		}
	}
}

// sourceRowsOf returns n rows of a source with its own stack. They take factor times as long as the untrained
// prior predicts.
func sourceRowsOf(t *testing.T, source string, n int, factor float64) []spec.Measurement {
	t.Helper()
	rows := hybridRows(t, n, 1, 0)
	for i := range rows {
		m := &rows[i]
		m.Source, m.Config.Framework = source, perftest.Stack(source)
		p, err := untrained().Predict(context.Background(), m.Config)
		if err != nil {
			t.Fatal(err)
		}
		sec, _, _ := p.StepSec(m.Config.Plan.GlobalBatch())
		m.StepSec = []float64{sec * factor}
	}
	return rows
}

func trained(t *testing.T, rows []spec.Measurement) *Prior {
	t.Helper()
	p, err := Train(context.Background(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPriorCoversSourcesLeftOut: the prior's interval contains the step times of a source outside its training
// data, for at least three sources in four.
func TestPriorCoversSourcesLeftOut(t *testing.T) {
	factors := map[string]float64{"a": 1, "b": 1.02, "c": 0.98, "d": 1.35, "e": 0.72, "f": 1.3, "g": 0.75, "h": 1.32}
	var all []spec.Measurement
	for _, name := range slices.Sorted(maps.Keys(factors)) {
		all = append(all, sourceRowsOf(t, name, 40, factors[name])...)
	}
	p := trained(t, all)
	covered := 0
	for name := range factors {
		without := trained(t, slices.DeleteFunc(slices.Clone(all), func(m spec.Measurement) bool { return m.Source == name }))
		inside, asked := 0, sourceRowsOf(t, name, 40, factors[name])
		for _, m := range asked {
			sec, lo, hi := secondsOf(t, without, m.Config)
			half := math.Log(hi/lo) / 2 * p.consts.Widths.Scale / without.consts.Widths.Scale
			if math.Abs(math.Log(m.MedianStepSec()/sec)) <= half {
				inside++
			}
		}
		if inside >= len(asked)*9/10 {
			covered++
		}
	}
	if covered < len(factors)*3/4 {
		t.Errorf("scale %.2f covers %d of %d sources", p.consts.Widths.Scale, covered, len(factors))
	}
}

// TestPriorWeighsSources: a source with many rows does not outweigh one with few.
func TestPriorWeighsSources(t *testing.T) {
	many, few := sourceRowsOf(t, "many", 120, 1.2), sourceRowsOf(t, "few", 60, 1)
	for i := range few { // at one site
		few[i].Config.Framework = perftest.Stack("many")
	}
	p := trained(t, slices.Concat(many, many, many, many, few))
	sum := 0.0
	for _, m := range few {
		sec, _, _ := secondsOf(t, p, m.Config)
		sum += math.Log(sec/m.MedianStepSec()) / float64(len(few))
	}
	if half := math.Log(1.2) / 2; math.Abs(sum-half) > half/2 {
		t.Errorf("where 480 rows of one source and 60 of another are 18 %% apart, %.3f from the few in log time, want about half, %.3f", sum, half)
	}
}
