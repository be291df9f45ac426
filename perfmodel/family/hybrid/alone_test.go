package hybrid

import (
	"math"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// aloneRows are rows of ranks alone that take factor times as long as the analytic model says, of plans for 64 devices.
func aloneRows(t *testing.T, factor float64) (out []spec.Measurement) {
	t.Helper()
	for _, tp := range []int{1, 2, 4} {
		for _, pp := range []int{2, 4} {
			for _, mb := range []int{1, 2, 4} {
				for _, stage := range []int{1, 2, pp} {
					c := perftest.GPT(spec.Plan{DP: 64 / tp / pp, TP: tp, PP: pp, MicroBatch: mb, AccumSteps: 8, ZeRO: 1, Precision: spec.BF16}.Normal())
					c.Framework, c.AloneStage = spec.FrameworkWorker, stage
					parts, err := (&analytic.Model{}).Explain(c)
					if err != nil {
						t.Fatal(err)
					}
					m := spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{factor * parts.Total()}, Source: "test"}
					if !slices.ContainsFunc(out, func(o spec.Measurement) bool { return o.Config == c }) {
						out = append(out, m)
					}
				}
			}
		}
	}
	return out
}

// TestLearnsFromAlone: rows of ranks alone that take longer than predicted lengthen the predictions of ranks alone, and
// those of whole plans, which are mostly compute here, and narrow their intervals.
func TestLearnsFromAlone(t *testing.T) {
	prior := Shipped()
	whole := perftest.GPT(spec.Plan{DP: 8, TP: 4, PP: 2, MicroBatch: 2, AccumSteps: 8, ZeRO: 1, Precision: spec.BF16}.Normal())
	whole.Framework = spec.FrameworkWorker
	before, err := prior.Family().Unfitted.Predict(t.Context(), whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, factor := range []float64{0.7, 1.5} {
		rows := aloneRows(t, factor)
		fitted, card, err := perfmodel.FitKey(t.Context(), prior.Family(), rows, perfmodel.FitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if card.NAlone != len(rows) || card.NHeldOut != 0 {
			t.Errorf("factor %g: %d rows of one rank of %d, %d held out", factor, card.NAlone, len(rows), card.NHeldOut)
		}
		worst := 0.0
		for _, m := range rows {
			p, err := fitted.Predict(t.Context(), m.Config)
			if err != nil {
				t.Fatal(err)
			}
			sec, lo, hi := p.StepSec(m.Config.Plan.GlobalBatch())
			worst = max(worst, math.Abs(sec/m.MedianStepSec()-1))
			if !(lo < sec && sec < hi) {
				t.Errorf("%s: %g s in [%g, %g]", m.Config.Plan, sec, lo, hi)
			}
		}
		if worst > 0.05 {
			t.Errorf("factor %g: the fitted rows are off by up to %.1f %%", factor, 100*worst)
		}
		after, err := fitted.Predict(t.Context(), whole)
		if err != nil {
			t.Fatal(err)
		}
		if moved := before.Throughput / after.Throughput; math.Abs(math.Log(moved/factor)) > 0.1 || after.HalfWidth() > 0.17 {
			t.Errorf("factor %g: a whole plan takes %.3g times as long, half width %.3g, before %.3g", factor, moved, after.HalfWidth(), before.HalfWidth())
		}
	}
}

// TestAloneIsLoaded: a stored model predicts ranks alone as before.
func TestAloneIsLoaded(t *testing.T) {
	prior, rows := Shipped(), aloneRows(t, 1.2)
	fitted, err := prior.Condition(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	b, err := fitted.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := prior.load(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range rows {
		want, err := fitted.Predict(t.Context(), m.Config)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := loaded.Predict(t.Context(), m.Config); err != nil || math.Abs(got.Throughput/want.Throughput-1) > 1e-9 {
			t.Errorf("%s: %+v, %v; want %+v", m.Config.Plan, got, err, want)
		}
	}
}

// TestAloneDoesNotMix: rows of ranks alone take no part in the fit of family rubick, which knows whole steps.
func TestAloneDoesNotMix(t *testing.T) {
	prior := Shipped()
	fitted, err := prior.Condition(t.Context(), aloneRows(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	if h := fitted.(*Model); len(h.mixed) > 0 || len(h.shapeless) > 0 {
		t.Errorf("%d keys are mixed, %d without a shape", len(h.mixed), len(h.shapeless))
	}
}
