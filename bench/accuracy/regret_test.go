package accuracy

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// constant predicts one throughput, without an interval.
type constant float64

func (c constant) Predict(context.Context, spec.Config) (spec.Prediction, error) {
	return spec.Prediction{Throughput: float64(c)}, nil
}

// alternative is a plan of 8 devices and global batch 8.
func alternative(tp int, measured, predicted float64) prediction {
	c := spec.Config{Model: spec.Model{Name: "m"}, Accelerator: spec.Accelerator{Name: "x"}, Shape: spec.Packed(8, 8),
		Plan: spec.Plan{DP: 8 / tp, TP: tp, MicroBatch: tp}.Normal()}
	return prediction{target: target{id: fmt.Sprint(tp), part: "s", config: c, want: measured}, got: predicted}
}

func TestRegret(t *testing.T) {
	three := []prediction{alternative(1, 10, 9), alternative(2, 12, 8), alternative(4, 15, 20)}
	if r := regret(three); r.Groups != 1 || math.Abs(r.Mean-0.2) > 1e-12 { // takes 12, could have had 10
		t.Errorf("regret %+v, want 0.2 over 1 choice", r)
	}
	if r := regret(three[:2]); r != (Regret{}) {
		t.Errorf("two plans are a choice: %+v", r)
	}
	refused := append(three[:2:2], prediction{target: three[2].target, err: errNo})
	if r := regret(refused); r.Groups != 0 {
		t.Errorf("a refused plan is an alternative: %+v", r)
	}
	best := []prediction{alternative(1, 10, 1), alternative(2, 12, 2), alternative(4, 15, 3)}
	for i := range best {
		best[i].part = "other"
	}
	if r := regret(append(best, three...)); r.Groups != 2 || math.Abs(r.Mean-0.1) > 1e-12 || math.Abs(r.Worst-0.2) > 1e-12 {
		t.Errorf("regret %+v, want 0.1 over 2 choices, at worst 0.2", r)
	}
}

// TestRegretGroups: what makes alternatives of different choices.
func TestRegretGroups(t *testing.T) {
	for what, change := range map[string]func(*prediction){
		"model":        func(a *prediction) { a.config.Model.Name = "n" },
		"device":       func(a *prediction) { a.config.Accelerator.Name = "y" },
		"placement":    func(a *prediction) { a.config.Shape = spec.Packed(16, 8) },
		"global batch": func(a *prediction) { a.config.Plan.MicroBatch *= 2 },
		"sequence":     func(a *prediction) { a.config.SeqLen = 4096 },
		"framework":    func(a *prediction) { a.config.Framework = "f" },
	} {
		g := []prediction{alternative(1, 10, 9), alternative(2, 12, 8), alternative(4, 15, 20)}
		change(&g[1])
		if r := regret(g); r.Groups != 0 {
			t.Errorf("another %s is an alternative: %+v", what, r)
		}
	}
	spread := []prediction{alternative(1, 10, 9), alternative(2, 12, 8), alternative(4, 15, 20)}
	spread[1].config.Shape = spec.Packed(8, 4) // as many devices on two nodes
	if r := regret(spread); r.Groups != 1 {
		t.Errorf("as many devices on more nodes are no alternative: %+v", r)
	}
}

// TestRegretMergesRepeats: repeats are one plan, at their median.
func TestRegretMergesRepeats(t *testing.T) {
	g := []prediction{alternative(1, 10, 9), alternative(1, 30, 9), alternative(1, 12, 9), alternative(2, 14, 10), alternative(2, 14, 10)}
	if r := regret(g); r.Groups != 0 {
		t.Errorf("repeats count as plans: %+v", r)
	}
	g = append(g, alternative(4, 11, 20))
	if r := regret(g); r.Groups != 1 || math.Abs(r.Mean-(12.0/11-1)) > 1e-12 {
		t.Errorf("regret %+v, want 12/11-1: the median of the repeats over the best", r)
	}
}
