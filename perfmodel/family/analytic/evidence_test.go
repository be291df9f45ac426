package analytic

import (
	"math"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// TestMixture: the step time of an unstated stack is the weighted geometric mean of its choices, and Between their
// spread.
func TestMixture(t *testing.T) {
	for _, plan := range []string{"dp=8,mb=1,ga=2,precision=bf16", "dp=8,mb=1,zero=3,precision=bf16", "dp=4,tp=2,mb=1,precision=bf16", "tp=2,pp=2,dp=2,mb=1,ga=4,precision=bf16"} {
		p, err := spec.ParsePlan(plan)
		if err != nil {
			t.Fatal(err)
		}
		c := perftest.GPT(p)
		c.Framework = ""
		e, apart, err := unknown.estimate(&c)
		if err != nil {
			t.Fatal(err)
		}
		p = p.Normal()
		choices := stack.Of("", "Ampere")
		mean, square, total := 0.0, 0.0, 0.0
		for i, w := range choices.Weight[stack.UseOf(&p)] {
			if w == 0 {
				continue
			}
			of := c
			of.Framework = "made " + choices.Stacks[i].Parts.String()
			one, _, err := unknown.estimate(&of)
			if err != nil {
				t.Fatal(err)
			}
			mean, square, total = mean+w*one.Log, square+w*one.Log*one.Log, total+w
		}
		same(t, plan, e.Log, mean)
		same(t, plan+" in parts", math.Log(e.Parts.Total()), mean)
		same(t, plan+" between", e.Between, math.Sqrt(square-mean*mean))
		sum := 0.0
		for _, a := range apart {
			sum += a * a
		}
		same(t, plan+" apart", math.Sqrt(sum), e.Between)
		if math.Abs(total-1) > 1e-9 {
			t.Errorf("%s: choices with probability %g", plan, total)
		}
	}
}

// rowsOn returns rows that say framework and ran on truth.
func rowsOn(t *testing.T, framework string, truth *stack.Stack, microBatches ...int) (rows []spec.Measurement) {
	t.Helper()
	for _, mb := range microBatches {
		c := attentionBound(framework, mb, 8)
		c.Framework = truth.Name + " " + truth.Parts.String()
		e, _, err := Shipped().Physics.estimate(&c)
		if err != nil {
			t.Fatal(err)
		}
		c.Framework = framework
		rows = append(rows, spec.Measurement{Config: c, Outcome: spec.OK, Source: "made", StepSec: []float64{math.Exp(e.Log)}})
	}
	return rows
}

// attentionBound returns a job in which the attention kernel decides.
func attentionBound(framework string, mb, ga int) spec.Config {
	c := perftest.GPT(spec.Plan{DP: 4, TP: 2, MicroBatch: mb, AccumSteps: ga, Precision: spec.BF16})
	c.SeqLen, c.Framework = 16384, framework
	return c
}

// weighed returns a calibration to rows.
func weighed(t *testing.T, rows []spec.Measurement) *Calibration {
	t.Helper()
	c, err := NewCalibration(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	c.Arrange()
	c.Weigh(Shipped())
	return c
}

// TestWeigh: rows that ran on one of the choices of an unstated stack make it the most likely one, and predictions of
// other plans approach it.
func TestWeigh(t *testing.T) {
	prior := Shipped()
	choices := stack.Of("Megatron-LM", "Ampere")
	if choices.Stated() {
		t.Fatal("Megatron-LM is stated")
	}
	for truth, of := range choices.Stacks[:choices.N] {
		c := weighed(t, rowsOn(t, "Megatron-LM", of, 1, 2, 4))
		w := weigh(choices, c.Evidence[Site{"Megatron-LM", "A"}])
		for use := range w {
			if w[use][truth] < 0.9 {
				t.Errorf("use %d: %s has probability %.2f after three rows of it", use, of.Parts, w[use][truth])
			}
		}
		ph := prior.PhysicsAt(&c.Layout, prior.DistributionOf(&c.Layout).Mean)
		open, stated := attentionBound("Megatron-LM", 1, 32), attentionBound(of.Name+"@"+of.Date, 1, 32)
		a, _, _ := ph.estimate(&open)
		b, _, _ := ph.estimate(&stated)
		if math.Abs(a.Log-b.Log) > 0.05 || a.Between > 0.2 {
			t.Errorf("%s: %.3f +- %.3f, stated %.3f", of.Parts, a.Log, a.Between, b.Log)
		}
	}
}

// TestWeighOtherDate: evidence that leaves out a choice of a query, since the rows are of another date, does not change
// its weights.
func TestWeighOtherDate(t *testing.T) {
	for _, c := range []struct{ rows, query string }{{"@..2023-01", ""}, {"", "@..2023-01"}, {"@..2024-07", ""}, {"Megatron-LM@..2023-05", "Megatron-LM"}} {
		choices := stack.Of(c.query, "Ampere")
		of := weighed(t, rowsOn(t, c.rows, stack.Of(c.rows, "Ampere").Stacks[0], 1, 2, 4))
		site := Site{choices.Name, "A"}
		if w := weigh(choices, of.Evidence[site]); of.Evidence[site] == nil || *w != weights(choices.Weight) {
			t.Errorf("rows of %q, query %q: weights %.2f of %.2f", c.rows, c.query, *w, choices.Weight)
		}
		ph := Shipped().PhysicsAt(&of.Layout, make([]float64, of.Layout.Size()))
		for _, p := range []spec.Plan{{DP: 8}, {DP: 8, ZeRO: 3}, {TP: 8}, {TP: 8, Precision: spec.FP8}} {
			q := attentionBound(c.query, 1, 8)
			q.Plan = p
			if _, err := ph.Predict(&q, ""); err != nil {
				t.Errorf("rows of %q, query %q, %s: %v", c.rows, c.query, p, err)
			}
		}
	}
}

// TestWeighMixedDates: rows that allow fewer stacks do not count for or against the others, and do not change the
// evidence of the others.
func TestWeighMixedDates(t *testing.T) {
	for _, parts := range []string{"", " launch=eager"} {
		early, late := "Megatron-LM@..2023-05"+parts, "Megatron-LM@..2024-07"+parts
		choices := stack.Of(late, "Ampere")
		for _, of := range choices.Stacks[:choices.N] {
			rows := rowsOn(t, late, of, 1, 2, 4)
			want := weigh(choices, weighed(t, rows).Evidence[Site{"Megatron-LM", "A"}])
			mixed := append(rowsOn(t, early, stack.Of(early, "Ampere").Stacks[0], 1, 1, 2, 2, 4, 4), rows...)
			evidence := weighed(t, mixed).Evidence[Site{"Megatron-LM", "A"}]
			got := weigh(choices, evidence)
			if *got != *want {
				t.Errorf("%s on %s: weights %.2f, without the rows of an earlier date %.2f", late, of.Date, got[stack.Split], want[stack.Split])
			}
			if n := len(evidence); n != int(stack.Uses)*(2+3) {
				t.Errorf("%s: %d pieces of evidence of two dates", late, n)
			}
			for range 20 {
				if again := weighed(t, mixed).Evidence[Site{"Megatron-LM", "A"}]; !slices.Equal(again, evidence) {
					t.Fatalf("%s: other evidence of the same rows", late)
				}
			}
		}
	}
}
