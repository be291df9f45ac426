package measured

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// row returns a measurement of an invented model: dp replicas of tp devices.
func row(dp, tp int, shape string, sec ...float64) spec.Measurement {
	sh, err := spec.ParseShape(shape)
	if err != nil {
		panic(err)
	}
	return spec.Measurement{
		Config: spec.Config{
			Model: spec.Model{Name: "m"}, Accelerator: spec.Accelerator{Name: "a"},
			Plan:  spec.Plan{DP: dp, TP: tp, MicroBatch: 16 / dp},
			Shape: sh,
		},
		Outcome: spec.OK, StepSec: sec, Source: "test",
	}
}

func predictSec(t *testing.T, p interface {
	Predict(context.Context, spec.Config) (spec.Prediction, error)
}, c spec.Config) float64 {
	t.Helper()
	got, err := p.Predict(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return float64(c.Plan.GlobalBatch()) / got.Throughput
}

func TestTableAnswersMeasuredConfigurationsOnly(t *testing.T) {
	oom := row(1, 1, "1")
	oom.Outcome = spec.OOM
	wrong := row(16, 1, "8+8", 0.1)
	wrong.Env = map[string]string{spec.EnvWrongConfig: "half the batch"}
	doubted := row(8, 1, "8", 3)
	doubted.Doubt = "erratic"
	quarantined := row(4, 1, "4", 2).Quarantine("throttled")
	tab := New([]spec.Measurement{row(2, 1, "2", 1), row(2, 1, "2", 4, 3), doubted, oom, wrong, quarantined, row(2, 1, "2", 9).Quarantine("odd")})

	if got := tab.Len(); got != 2 {
		t.Fatalf("%d configurations, want 2: %v", got, tab.Configs())
	}
	if got := predictSec(t, tab, row(2, 1, "2").Config); math.Abs(got-3) > 1e-12 {
		t.Errorf("pooled median %g s, want 3", got)
	}
	if got := predictSec(t, tab, row(8, 1, "8").Config); math.Abs(got-3) > 1e-12 {
		t.Errorf("a doubted row happened: got %g s, want 3", got)
	}
	for _, c := range []spec.Config{oom.Config, wrong.Config, quarantined.Config, row(2, 1, "1+1").Config, row(1, 2, "2").Config} {
		if _, err := tab.Predict(context.Background(), c); !errors.Is(err, ErrNotMeasured) {
			t.Errorf("%s on %s: %v, want ErrNotMeasured", c.Plan, c.Shape.Devices, err)
		}
	}
}

// TestTableIgnoresDescriptiveFigures: the look-up ignores the figures that describe a model.
func TestTableIgnoresDescriptiveFigures(t *testing.T) {
	tab := New([]spec.Measurement{row(2, 1, "2", 1)})
	c := row(2, 1, "2").Config
	c.Model.ParamCount, c.Accelerator.MemBytes, c.Link.InterBps = 1e9, 80e9, 1e9
	c.Plan = c.Plan.Normal()
	if got := predictSec(t, tab, c); math.Abs(got-1) > 1e-12 {
		t.Errorf("got %g s, want 1", got)
	}
}

type constant float64

func (s constant) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	return spec.Prediction{Throughput: float64(c.Plan.GlobalBatch()) / float64(s)}, nil
}

func TestNearest(t *testing.T) {
	tab := New([]spec.Measurement{
		row(2, 1, "2", 8), row(8, 1, "8", 2), row(8, 1, "4+4", 3), row(8, 1, "1+1+1+1+1+1+1+1", 6), row(1, 4, "4", 5),
	})
	n := NewNearest(tab, constant(7))
	for _, tc := range []struct {
		name string
		c    spec.Config
		want float64
	}{
		{"exact", row(8, 1, "4+4").Config, 3},
		{"log-log between 2 and 8", row(4, 1, "4").Config, 4},
		{"same count, like 4+4", row(8, 1, "5+3").Config, 3},
		{"same count, like eight ones", row(8, 1, "2+1+1+1+1+1+1").Config, 6},
		{"beyond the largest: modelled", row(16, 1, "8+8").Config, 7},
		{"other split: modelled", row(1, 2, "2").Config, 7},
	} {
		if got := predictSec(t, n, tc.c); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("%s: %g s, want %g", tc.name, got, tc.want)
		}
	}
	if e, i, m := n.Lookups(); e != 1 || i != 3 || m != 2 {
		t.Errorf("look-ups %d exact, %d interpolated, %d modelled; want 1, 3, 2", e, i, m)
	}
	if _, err := NewNearest(tab, nil).Predict(context.Background(), row(16, 1, "8+8").Config); !errors.Is(err, ErrNotMeasured) {
		t.Errorf("without a fallback: %v, want ErrNotMeasured", err)
	}
}

func TestTableSkipsTimesThatAreNone(t *testing.T) {
	tab := New([]spec.Measurement{row(1, 1, "1", 0), row(2, 1, "2", math.NaN()), row(4, 1, "4")})
	if tab.Len() != 0 {
		t.Errorf("%d configurations of rows without a time: %v", tab.Len(), tab.Configs())
	}
}

// TestNearestPrefersTheMicroBatch where layouts are equal.
func TestNearestPrefersTheMicroBatch(t *testing.T) {
	at := func(mb int, sec ...float64) spec.Measurement {
		m := row(2, 1, "2", sec...)
		m.Config.Plan.MicroBatch, m.Config.Plan.AccumSteps = mb, 32/mb
		return m
	}
	n := NewNearest(New([]spec.Measurement{at(1, 9), at(4, 3), at(32, 2)}), nil)
	for mb, want := range map[int]float64{2: 9, 8: 3, 16: 2} { // at equal distance, the first in the table
		if got := predictSec(t, n, at(mb).Config); math.Abs(got-want) > 1e-9 {
			t.Errorf("micro-batch %d: %g s, want %g", mb, got, want)
		}
	}
}

// TestLookUpsTellPlansApart: another number of tokens per sample, or another mode, is neither the same
// configuration nor a neighbour.
func TestLookUpsTellPlansApart(t *testing.T) {
	tab := New([]spec.Measurement{row(2, 1, "2", 1), row(8, 1, "8", 1)})
	for name, change := range map[string]func(*spec.Config){
		"tokens":    func(c *spec.Config) { c.SeqLen = 77 },
		"ZeRO":      func(c *spec.Config) { c.Plan.ZeRO = 1 },
		"recompute": func(c *spec.Config) { c.Plan.Recompute = spec.RecomputeFull },
		"precision": func(c *spec.Config) { c.Plan.Precision = spec.FP32 },
		"batch":     func(c *spec.Config) { c.Plan.MicroBatch *= 2 },
	} {
		for _, dp := range []int{2, 4} { // measured, and between measured device counts
			c := row(dp, 1, "8", 1).Config
			c.Shape = spec.NewShape(dp)
			change(&c)
			if p, err := NewNearest(tab, nil).Predict(context.Background(), c); !errors.Is(err, ErrNotMeasured) {
				t.Errorf("%s, dp=%d: %+v, %v; want ErrNotMeasured", name, dp, p, err)
			}
		}
	}
}

func TestTableDoesNotDependOnOrder(t *testing.T) {
	a, b := row(2, 1, "2", 1), row(2, 1, "2", 3)
	a.Config.Framework, b.Config.Framework = "one", "two"
	ab, ba := New([]spec.Measurement{a, b}), New([]spec.Measurement{b, a})
	if ab.Configs()[0] != ba.Configs()[0] || predictSec(t, ab, a.Config) != predictSec(t, ba, a.Config) {
		t.Errorf("%v, in the other order %v", ab.Configs(), ba.Configs())
	}
}

// TestTableSkipsImpossibleRows: a row with more memory than its device has is not looked up.
func TestTableSkipsImpossibleRows(t *testing.T) {
	m := row(4, 1, "4", 2)
	m.Config.Accelerator.MemBytes, m.PeakBytes = 80e9, 70e9
	if n := len(New([]spec.Measurement{m}).Configs()); n != 1 {
		t.Errorf("%d configurations of a good row", n)
	}
	m.PeakBytes = 120e9
	if n := len(New([]spec.Measurement{m}).Configs()); n != 0 {
		t.Errorf("%d configurations of a row that no device can have", n)
	}
}
