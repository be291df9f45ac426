package nextplans

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// resolver answers from a store with rows.
func resolver(t *testing.T, rows ...spec.Measurement) *query.Resolver {
	t.Helper()
	db, reg := querytest.Open(t, rows...)
	return &query.Resolver{Read: func(use func(reader.Store) error) error { return use(db) }, Fitted: reg}
}

func choose(t *testing.T, d *query.Resolver, in CalibrateNextRequest) (CalibrateNext, error) {
	t.Helper()
	in.Accelerator = "h100"
	return Choose(t.Context(), answer.New(d), d, &in)
}

func llama(devices, points int) CalibrateNextRequest {
	return CalibrateNextRequest{Request: query.Request{Model: "llama3-8b"}, Devices: devices, Points: points}
}

// row returns a measurement of a plan to measure, factor times slower than predicted without a fit.
func row(t *testing.T, n NextPlan, model string, factor float64, at time.Time) spec.Measurement {
	t.Helper()
	m, a := querytest.Named(t, "llama3-8b", "h100")
	m.Name = model
	plan, err := spec.ParsePlan(n.Plan)
	if err != nil {
		t.Fatal(err)
	}
	shape, err := spec.ParseShape(n.Shape)
	if err != nil {
		t.Fatal(err)
	}
	c := spec.Config{Model: m, Accelerator: a, Plan: plan, Shape: shape, SeqLen: n.SeqLen, Link: query.NodeOf(a).Link}
	p, err := query.Unfitted("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	predicted, err := p.Predict(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	sec, _, _ := predicted.StepSec(plan.GlobalBatch())
	return spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{factor * sec}, Source: "ours", Origin: n.Plan + n.Shape + at.String(), At: at}
}

// widest returns the largest half width of the plans to measure.
func widest(out CalibrateNext) (half float64) {
	for _, p := range out.Plans {
		half = max(half, p.HalfWidth)
	}
	return half
}

// Measuring what is proposed narrows the intervals, and what is measured is not proposed again.
func TestChooseAfterMeasuring(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	first, err := choose(t, resolver(t), llama(16, 6))
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Plans) != 6 || first.Considered < 20 || first.Measured != 0 || first.Rows != 0 || first.Stopped != "" {
		t.Fatalf("%+v", first)
	}
	var rows []spec.Measurement
	seen := map[string]bool{}
	for i, p := range first.Plans {
		if p.Why == "" || !(p.HoldSec > 0) || p.GlobalBatch < 1 || p.Devices < 1 || p.Devices > 16 || seen[p.Plan] || p.Model != "Llama3-8B" {
			t.Errorf("plan %d: %+v", i, p)
		}
		seen[p.Plan] = true
		rows = append(rows, row(t, p, "Llama-3-8B", 1.5, now), row(t, p, "Llama-3-8B", 3, now.Add(-time.Hour))) // under another name; the newer counts
	}
	second, err := choose(t, resolver(t, rows...), llama(16, 6))
	if err != nil {
		t.Fatal(err)
	}
	if second.Rows != 6 || second.Measured != 6 || second.Considered+6 != first.Considered || first.HalfWidth != 0 || !(second.HalfWidth > 0) || !(widest(second) < widest(first)) || len(second.Plans) != 6 {
		t.Errorf("%d rows, %d measured, %d considered of %d, half width %g, widest %g, before %g", second.Rows, second.Measured, second.Considered, first.Considered, second.HalfWidth, widest(second), widest(first))
	}
	for _, p := range second.Plans {
		if seen[p.Plan] || strings.HasPrefix(p.Why, "first of") || !(p.Gain >= 0) {
			t.Errorf("proposed after it was measured, or not from a fit: %+v", p)
		}
	}
	again, err := choose(t, resolver(t, rows...), llama(16, 6))
	if again.ElapsedS = second.ElapsedS; err != nil || !slices.Equal(again.Plans, second.Plans) {
		t.Errorf("another answer to the same question: %+v", again)
	}
}

// A budget ends the list: the expected times of its plans fit in it.
func TestChooseWithinBudget(t *testing.T) {
	d := resolver(t)
	held := func(in CalibrateNextRequest) (sec, deviceHours float64, out CalibrateNext) {
		out, err := choose(t, d, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range out.Plans {
			sec += p.HoldSec
			deviceHours += p.HoldSec * float64(p.Devices) / 3600
		}
		return sec, deviceHours, out
	}
	in := llama(8, 0)
	in.BudgetSec = 600
	sec, _, out := held(in)
	if sec > 600 || sec < 300 || len(out.Plans) < 2 || len(out.Plans) == MaxPoints || out.Stopped != "no further plan fits in the budget" {
		t.Errorf("%g s of 600, %d plans, %q", sec, len(out.Plans), out.Stopped)
	}
	in = llama(8, 0)
	in.DeviceHours = 0.5
	_, hours, out := held(in)
	if hours > 0.5 || hours < 0.2 || len(out.Plans) < 2 || out.Stopped == "" {
		t.Errorf("%g of 0.5 device-hours, %d plans, %q", hours, len(out.Plans), out.Stopped)
	}
	if _, _, out = held(llama(8, 0)); len(out.Plans) != 4 || out.Stopped != "" {
		t.Errorf("%d plans without a budget, want 4; %q", len(out.Plans), out.Stopped)
	}
	if _, _, out = held(llama(8, MaxPoints)); len(out.Plans) != min(MaxPoints, out.Considered) {
		t.Errorf("%d plans of %d, want %d", len(out.Plans), out.Considered, MaxPoints)
	}
}

// All likely plans measured: nothing is left to propose.
func TestChooseAllMeasured(t *testing.T) {
	in := llama(2, MaxPoints)
	in.GlobalBatch = 2
	first, err := choose(t, resolver(t), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Plans) == MaxPoints {
		t.Fatal("as many plans as can be asked for: too many for this test")
	}
	if first.Stopped != "every likely plan is chosen" {
		t.Errorf("%q", first.Stopped)
	}
	var rows []spec.Measurement
	for _, p := range first.Plans {
		rows = append(rows, row(t, p, "Llama3-8B", 1, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	}
	last, err := choose(t, resolver(t, rows...), in)
	if err != nil || last.Plans == nil || len(last.Plans) != 0 || last.Measured != len(rows) || !strings.Contains(last.Stopped, "are measured") {
		t.Errorf("%+v, %v", last, err)
	}
}

// The plans of a framework are those that it can express, each with its launch file.
func TestChooseEmit(t *testing.T) {
	in := llama(8, 3)
	in.Emit = "deepspeed"
	out, err := choose(t, resolver(t), in)
	if err != nil || len(out.Plans) != 3 {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, p := range out.Plans {
		if p.Launch == nil || p.Launch.Text == "" || p.Launch.Framework != "deepspeed" {
			t.Errorf("%+v", p)
		}
	}
}

func TestChooseErrors(t *testing.T) {
	big := llama(1, 1)
	big.Model = "llama3-70b"
	unknown := llama(8, 1)
	unknown.Emit = "nosuch"
	var field *query.FieldError
	for name, c := range map[string]struct {
		in CalibrateNextRequest
		is func(error) bool
	}{
		"no plan fits":      {big, func(err error) bool { return errors.Is(err, planner.ErrInfeasible) }},
		"unknown framework": {unknown, func(err error) bool { return errors.As(err, &field) && field.Field == "emit" }},
	} {
		if _, err := choose(t, resolver(t), c.in); err == nil || !c.is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A model that the request describes has no measurements, even if the store has rows of another one with its name.
func TestChooseOwnModel(t *testing.T) {
	first, err := choose(t, resolver(t), llama(8, 2))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := querytest.Named(t, "llama3-8b", "h100")
	in := llama(8, 2)
	in.Own = &m
	out, err := choose(t, resolver(t, row(t, first.Plans[0], "Llama3-8B", 2, time.Now())), in)
	if err != nil || out.Rows != 0 || out.Measured != 0 || len(out.Plans) != 2 {
		t.Errorf("%+v, %v", out, err)
	}
}

// Only the newest rows count, so that no number of rows makes an answer take longer.
func TestNewestOf(t *testing.T) {
	rows := map[job]spec.Measurement{}
	for i := range maxRows + 7 {
		m := spec.Measurement{At: time.Unix(int64(i), 0)}
		m.Config.Plan = spec.Plan{DP: i + 1}.Normal()
		rows[jobOf(&m.Config)] = m
	}
	out := newestOf(rows)
	if len(out) != maxRows || len(rows) != maxRows || out[0].At.Unix() != maxRows+6 || out[maxRows-1].At.Unix() != 7 {
		t.Errorf("%d rows, %d kept, from %v to %v", len(out), len(rows), out[0].At, out[len(out)-1].At)
	}
}

// The estimate rises with what makes a search longer.
func TestCost(t *testing.T) {
	in, wide, many := llama(8, 4), llama(1024, 4), llama(8, 64)
	if c := in.Cost(1e-3); !(c > 0 && wide.Cost(1e-3) > c && many.Cost(1e-3) > 3*c) || math.IsInf(c, 0) {
		t.Errorf("%g, wide %g, many %g", in.Cost(1e-3), wide.Cost(1e-3), many.Cost(1e-3))
	}
}
