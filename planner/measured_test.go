package planner_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// table predicts samples/s by plan and shape.
type table map[string]float64

func (tb table) key(c spec.Config) string { return c.Plan.String() + " on " + c.Shape.Devices }

func (tb table) configs(t testing.TB, m spec.Model, a spec.Accelerator) (out []spec.Config) {
	for k := range tb {
		plan, shape, _ := strings.Cut(k, " on ")
		p, err := spec.ParsePlan(plan)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, spec.Config{Model: m, Accelerator: a, Plan: p, Shape: spec.Shape{Devices: shape}})
	}
	return out
}

func (tb table) predictor() predictor {
	return func(c spec.Config) (spec.Prediction, error) {
		v, ok := tb[tb.key(c)]
		if !ok {
			return spec.Prediction{}, fmt.Errorf("no entry %s: %w", tb.key(c), perfmodel.ErrNotCovered)
		}
		return spec.Prediction{Throughput: v}, nil
	}
}

// measuredTable is a job with a best plan that depends on its devices: data
// parallelism does not fit on one or two, tensor parallelism wins on four, 3D on
// eight; three devices do not help, and a spread placement is slower.
var measuredTable = table{
	"dp=1,tp=1,pp=1,mb=1,ga=16,zero=2,offload=optimizer on 1": 1.0,
	"dp=1,tp=2,pp=1,mb=4,ga=4 on 2":                           3.0,
	"dp=2,tp=1,pp=1,mb=4,ga=2,zero=2,offload=optimizer on 2":  1.8,
	"dp=1,tp=4,pp=1,mb=8,ga=2 on 4":                           5.5,
	"dp=1,tp=4,pp=1,mb=8,ga=2 on 2+2":                         2.5,
	"dp=4,tp=1,pp=1,mb=4,ga=1,zero=2 on 4":                    5.0,
	"dp=2,tp=2,pp=2,mb=2,ga=4 on 8":                           9.0,
	"dp=8,tp=1,pp=1,mb=2,ga=1,zero=2 on 8":                    8.0,
	"dp=8,tp=1,pp=1,mb=2,ga=1,zero=2 on 4+4":                  6.0,
	"dp=1,tp=2,pp=8,mb=1,ga=16 on 8+8":                        7.0,
}

func measuredPlanner(t testing.TB) (*planner.Planner, planner.Request) {
	m, a := testModel(24, 2048, 16), testAccelerator(1) // too small for any estimate: measured is proof enough
	pl := planner.New(measuredTable.predictor(), planner.Options{Space: planner.NewMeasured(measuredTable.configs(t, m, a))})
	return pl, planner.Request{Model: m, Accelerator: a, GlobalBatch: 16}
}

func TestMeasuredCurve(t *testing.T) {
	pl, r := measuredPlanner(t)
	r.Devices = 16
	c, err := pl.Curve(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{1, 3, 3, 5.5, 5.5, 5.5, 5.5, 9, 9, 9, 9, 9, 9, 9, 9, 9}
	if len(c.Points) != len(want) {
		t.Fatalf("%d points, want %d", len(c.Points), len(want))
	}
	for i, p := range c.Points {
		if p.Devices != i+1 || p.Choice.Prediction.Throughput != want[i] {
			t.Errorf("point %d: %d devices, %g samples/s, want %g", i, p.Devices, p.Choice.Prediction.Throughput, want[i])
		}
	}
	if got := c.Points[15].Choice.Config; got.Plan.Devices() != 8 || got.Shape.Devices != "8" {
		t.Errorf("16 devices are answered with %s on %s, want the smaller one", got.Plan, got.Shape.Devices)
	}
}

func TestMeasuredRank(t *testing.T) {
	pl, r := measuredPlanner(t)
	r.Devices = 4
	rank, err := pl.Rank(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range rank.Choices {
		got = append(got, fmt.Sprintf("%s on %s", c.Config.Plan, c.Config.Shape.Devices))
	}
	want := "dp=1,tp=4,pp=1,mb=8,ga=2 on 4; dp=4,tp=1,pp=1,mb=4,ga=1,zero=2 on 4; dp=1,tp=4,pp=1,mb=8,ga=2 on 2+2"
	if strings.Join(got, "; ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "; "), want)
	}
	r.Shape = spec.NewShape(2, 2)
	if c, err := pl.Best(ctx, r); err != nil || c.Prediction.Throughput != 2.5 {
		t.Errorf("on 2+2: %g samples/s, %v", c.Prediction.Throughput, err)
	}
	p, _ := spec.ParsePlan("dp=4,tp=1,pp=1,mb=4,ga=1,zero=2")
	r.Shape, r.Plan = spec.Shape{}, &p
	if c, err := pl.Best(ctx, r); err != nil || c.Prediction.Throughput != 5 {
		t.Errorf("with a fixed plan: %g samples/s, %v", c.Prediction.Throughput, err)
	}
}

func TestMeasuredInfeasible(t *testing.T) {
	pl, r := measuredPlanner(t)
	plan, _ := spec.ParsePlan("dp=4,tp=1,pp=1,mb=2,ga=2")
	for want, change := range map[string]func(*planner.Request){
		"was measured on [1 2 4 8 16] devices, not 3": func(r *planner.Request) { r.Devices = 3 },
		"with global batches [16], not 32":            func(r *planner.Request) { r.Devices, r.GlobalBatch = 4, 32 },
		"was not measured":                            func(r *planner.Request) { r.Devices, r.Model.Name = 4, "other" },
		"but not with this plan and shape":            func(r *planner.Request) { r.Devices, r.Plan = 4, &plan },
	} {
		at := r
		change(&at)
		if _, err := pl.Best(ctx, at); !errors.Is(err, planner.ErrInfeasible) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestMeasuredDropsDuplicates(t *testing.T) {
	m, a := testModel(24, 2048, 16), testAccelerator(80)
	cs := measuredTable.configs(t, m, a)
	s := planner.NewMeasured(append(cs, cs...))
	n := 0
	for range s.Configs(ctx, planner.Request{Model: m, Accelerator: a, GlobalBatch: 16, Devices: 8}) {
		n++
	}
	if n != 3 {
		t.Errorf("%d configurations on 8 devices, want 3", n)
	}
	if got := fmt.Sprint(s.Counts(spec.Key{Model: m.Name, Accelerator: a.Name}, 16)); got != "[1 2 4 8 16]" {
		t.Errorf("counts %s", got)
	}
}

func TestMeasuredTokensPerSampleMustAgree(t *testing.T) {
	pl, r := measuredPlanner(t)
	r.Devices = 4
	if _, err := pl.Best(ctx, r); err != nil {
		t.Errorf("as measured: %v", err)
	}
	r.SeqLen = r.Model.SeqLen / 2
	if _, err := pl.Best(ctx, r); !errors.Is(err, planner.ErrInfeasible) || !strings.Contains(err.Error(), "tokens per sample") {
		t.Errorf("half the tokens: %v", err)
	}
}
