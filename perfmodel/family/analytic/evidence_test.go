package analytic

import (
	"math"
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

// TestWeigh: rows that ran on one of the choices of an unstated stack make it the most likely one, and predictions of
// other plans approach it.
func TestWeigh(t *testing.T) {
	prior := Shipped()
	choices := stack.Of("Megatron-LM", "Ampere")
	if choices.Stated() {
		t.Fatal("Megatron-LM is stated")
	}
	for truth := range choices.N {
		var rows []spec.Measurement
		at := func(mb, ga int) (open, stated spec.Config) {
			open = perftest.GPT(spec.Plan{DP: 4, TP: 2, MicroBatch: mb, AccumSteps: ga, Precision: spec.BF16})
			open.SeqLen = 16384 // where the attention kernel decides
			stated = open
			open.Framework = "Megatron-LM"
			stated.Framework = "Megatron-LM " + choices.Stacks[truth].Parts.String()
			return open, stated
		}
		for _, mb := range []int{1, 2, 4} {
			open, stated := at(mb, 8)
			e, _, err := prior.Physics.estimate(&stated)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, spec.Measurement{Config: open, Outcome: spec.OK, Source: "made", StepSec: []float64{math.Exp(e.Log)}})
		}
		c, err := NewCalibration(t.Context(), rows)
		if err != nil {
			t.Fatal(err)
		}
		c.Arrange()
		c.Weigh(prior)
		site := Site{"Megatron-LM", "A"}
		w := weigh(choices, c.Evidence[site])
		for use := range w {
			if w[use][truth] < 0.9 {
				t.Errorf("use %d: %s has probability %.2f after three rows of it", use, choices.Stacks[truth].Parts, w[use][truth])
			}
		}
		ph := prior.PhysicsAt(&c.Layout, make([]float64, c.Layout.Size()))
		open, stated := at(1, 32)
		a, _, _ := ph.estimate(&open)
		b, _, _ := ph.estimate(&stated)
		if math.Abs(a.Log-b.Log) > 0.1 || a.Between > 0.2 {
			t.Errorf("%s: %.3f +- %.3f, stated %.3f", choices.Stacks[truth].Parts, a.Log, a.Between, b.Log)
		}
	}
}
