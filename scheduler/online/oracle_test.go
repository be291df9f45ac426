package online_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler/online"
)

// config is plain data parallelism of a model on devices of one node.
func config(model string, devices int) spec.Config {
	return spec.Config{Model: spec.Model{Name: model, Kind: spec.Opaque}, Accelerator: spec.Accelerator{Name: "x"},
		Plan: spec.Plan{DP: devices, MicroBatch: 64 / devices}.Normal(), Shape: spec.NewShape(devices)}
}

// sec is the true step time, of the form of family optimus: 10 ms per sample, 20 ms fixed, 80 ms for the ring.
func sec(devices int) float64 {
	w := float64(devices)
	return 0.01*64/w + 0.02 + 0.08*(w-1)/w
}

func row(model string, devices int, sec float64) spec.Measurement {
	return spec.Measurement{Config: config(model, devices), Outcome: spec.OK, StepSec: []float64{sec}, Source: "test"}
}

func optimus(t *testing.T) perfmodel.Family {
	t.Helper()
	f, err := family.Lookup("optimus")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func newOracle(t *testing.T, o online.Options) *online.Oracle {
	t.Helper()
	if o.Family.Name == "" {
		o.Family = optimus(t)
	}
	var space []spec.Config
	for _, model := range []string{"a", "b"} {
		for n := 1; n <= 32; n *= 2 {
			space = append(space, config(model, n))
		}
	}
	o.Planner.Space = planner.NewMeasured(space)
	out, err := online.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// profile is the profile before the run, with twice the true step times.
func profile(model string, sizes ...int) (rows []spec.Measurement) {
	for _, n := range sizes {
		rows = append(rows, row(model, n, sec(n)/2))
	}
	return rows
}

func learn(t *testing.T, o *online.Oracle, at time.Duration, seen ...spec.Measurement) {
	t.Helper()
	if err := o.Learn(t.Context(), at, seen); err != nil {
		t.Fatal(err)
	}
}

func predicted(t *testing.T, o *online.Oracle, model string, devices int) float64 {
	t.Helper()
	c := config(model, devices)
	p, err := o.Predict(t.Context(), c)
	if errors.Is(err, perfmodel.ErrNotCovered) {
		return math.NaN()
	}
	if err != nil {
		t.Fatal(err)
	}
	s, _, _ := p.StepSec(c.Plan.GlobalBatch())
	return s
}

// Measurements replace a wrong profile, for their key only, and the planner's cached answers change.
func TestLearns(t *testing.T) {
	o := newOracle(t, online.Options{Rows: append(profile("a", 1, 2, 4, 8, 16), profile("b", 1, 2, 4, 8, 16)...)})
	a, b := spec.Key{Model: "a", Accelerator: "x"}, spec.Key{Model: "b", Accelerator: "x"}
	request := planner.Request{Model: config("a", 4).Model, Accelerator: spec.Accelerator{Name: "x"}, Devices: 4, PerNode: 32, GlobalBatch: 64}
	best := func() float64 {
		c, err := o.Best(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return 64 / c.Prediction.Throughput
	}
	if got, want := best(), sec(4)/2; math.Abs(got/want-1) > 1e-6 {
		t.Fatalf("a step on 4 takes %g s, profiled were %g", got, want)
	}
	before := o.Revision(a)
	for i, n := range []int{1, 2, 4, 8, 16} {
		for k := range 3 { // until the median of each is an observed time
			learn(t, o, time.Duration(10*i+k)*time.Second, row("a", n, sec(n)))
		}
	}
	if got, want := best(), sec(4); math.Abs(got/want-1) > 0.02 {
		t.Errorf("a step on 4 takes %g s, observed %g", got, want)
	}
	if got, want := predicted(t, o, "a", 32), sec(32); math.Abs(got/want-1) > 0.05 {
		t.Errorf("a step on 32 takes %g s, want %g", got, want)
	}
	if got, want := predicted(t, o, "b", 4), sec(4)/2; math.Abs(got/want-1) > 1e-6 {
		t.Errorf("of another model a step takes %g s, profiled were %g", got, want)
	}
	if o.Revision(a) <= before || o.Revision(b) != 1 {
		t.Errorf("revisions %d and %d, want above %d and 1", o.Revision(a), o.Revision(b), before)
	}
	r := o.Learned()
	if r.Seen != 15 || r.Known != 15 || !(r.MAPE > 0 && r.MAPE < 0.5) {
		t.Errorf("%+v", r)
	}
	if r.Fits != 10 { // after the first and second observation of each, not the third
		t.Errorf("fitted %d times, want 10", r.Fits)
	}
}

// sure is a fit with step times of 1 s and an interval of a given width.
type sure struct{ half float64 }

func (s sure) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	v := float64(c.Plan.GlobalBatch())
	p := spec.Prediction{Throughput: v}
	if s.half > 1 {
		p.Lo, p.Hi = v/s.half, v*s.half
	}
	return p, nil
}

func (sure) MarshalBinary() ([]byte, error) { return nil, nil }

// The estimate of a measured configuration moves towards the measurement, more with a less certain fit and more
// measurements. Other configurations keep the fit.
func TestMeasuredIsPredicted(t *testing.T) {
	for _, c := range []struct {
		name     string
		half     float64
		times    int
		lo, hi   float64 // bounds of the estimate for a measured step time of 2 s
		interval float64 // Hi/Lo at most
	}{
		{"no interval", 0, 1, 2, 2, math.Exp(3.29 * 0.021)},
		{"a wide one", 1.5, 1, 1.98, 2, math.Exp(3.29 * 0.021)},
		{"a narrow one", 1.001, 1, 1, 1.01, 1.003},
		{"as wide as the noise", math.Exp(1.645 * 0.02), 1, math.Sqrt2 - 1e-6, math.Sqrt2 + 1e-6, math.Exp(3.29 * 0.0142)},
		{"the same, measured often", math.Exp(1.645 * 0.02), 8, 1.8, 2, math.Exp(3.29 * 0.007)},
	} {
		fam := perfmodel.Family{Name: "sure", Fit: func(context.Context, iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
			return sure{c.half}, perfmodel.Card{}, nil
		}}
		o := newOracle(t, online.Options{Family: fam})
		for i := range c.times {
			learn(t, o, time.Duration(i)*time.Second, row("a", 4, 2))
		}
		if got := predicted(t, o, "a", 4); !(got >= c.lo-1e-9 && got <= c.hi+1e-9) {
			t.Errorf("%s: a step takes %g s, want %g to %g", c.name, got, c.lo, c.hi)
		}
		if p, err := o.Predict(t.Context(), config("a", 4)); err != nil || !(p.Lo < p.Throughput && p.Throughput < p.Hi && p.Hi/p.Lo <= c.interval) {
			t.Errorf("%s: %g in %g to %g, error %v, want an interval of a factor of %g at most", c.name, p.Throughput, p.Lo, p.Hi, err, c.interval)
		}
		if got := predicted(t, o, "a", 8); got != 1 {
			t.Errorf("%s: elsewhere a step takes %g s, want 1", c.name, got)
		}
	}
}

// A model without a profile has no estimate until enough is measured.
func TestColdStart(t *testing.T) {
	o := newOracle(t, online.Options{})
	for i, n := range []int{1, 2, 4, 8} {
		if got := predicted(t, o, "a", 4); i < 3 && !math.IsNaN(got) {
			t.Errorf("after %d step times a step takes %g s", i, got)
		}
		learn(t, o, time.Duration(i)*time.Second, row("a", n, sec(n)))
	}
	if got, want := predicted(t, o, "a", 4), sec(4); math.Abs(got/want-1) > 1e-6 {
		t.Errorf("a step on 4 takes %g s, want %g", got, want)
	}
	if r := o.Learned(); r.Seen != 4 || r.Known == 4 || r.Unfit == 0 || r.Unfit == r.Fits {
		t.Errorf("%+v", r)
	}
}

// A key is fitted at most once per Every; measurements in between go into the next fit.
func TestBatches(t *testing.T) {
	o := newOracle(t, online.Options{Rows: profile("a", 1, 2, 4, 8, 16), Every: time.Minute})
	for i, n := range []int{1, 2, 4, 8} {
		learn(t, o, time.Duration(i)*time.Second, row("a", n, sec(n)))
	}
	if r := o.Learned(); r.Fits != 0 {
		t.Errorf("fitted %d times in a minute", r.Fits)
	}
	learn(t, o, 60*time.Second)
	learn(t, o, 200*time.Second)
	if r := o.Learned(); r.Fits != 1 {
		t.Errorf("fitted %d times, want 1", r.Fits)
	}
}

// Invalid measurements are rejected.
func TestRefuses(t *testing.T) {
	o := newOracle(t, online.Options{Rows: profile("a", 1, 2, 4, 8, 16)})
	for _, sec := range [][]float64{nil, {math.NaN()}, {0}, {-1}} {
		m := row("a", 1, 1)
		m.StepSec = sec
		if err := o.Learn(t.Context(), 0, []spec.Measurement{m}); err == nil {
			t.Errorf("step times %g were taken", sec)
		}
	}
	for want, c := range map[string]online.Options{
		`family "analytic" has no fit`: {Family: perfmodel.Family{Name: "analytic"}},
		"fits every -1s":               {Family: optimus(t), Every: -time.Second},
		"reserve 2":                    {Family: optimus(t), Planner: planner.Options{Reserve: 2}},
	} {
		if _, err := online.New(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

// A fit that fails during a run leaves the estimate.
func TestFailedFit(t *testing.T) {
	fam, fits := optimus(t), 0
	fit := fam.Fit
	fam.Fit = func(ctx context.Context, rows iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
		if fits++; fits > 1 {
			return nil, perfmodel.Card{}, errors.New("figures too large")
		}
		return fit(ctx, rows)
	}
	o := newOracle(t, online.Options{Family: fam, Rows: profile("a", 1, 2, 4, 8, 16)})
	before := predicted(t, o, "a", 4)
	learn(t, o, time.Second, row("a", 4, 5))
	if got := predicted(t, o, "a", 4); got != before {
		t.Errorf("a step takes %g s, before %g", got, before)
	}
	if r := o.Learned(); r.Fits != 1 || r.Unfit != 1 || o.Revision(spec.Key{Model: "a", Accelerator: "x"}) != 1 {
		t.Errorf("%+v", r)
	}
}
