package candidate

import (
	"context"
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// wrong predicts speeds with errors of their logarithm. Devices add ever less, and tensor parallelism costs a tenth.
type wrong struct {
	err    func(c *spec.Config) float64
	stated float64 // standard deviation of the error
	by     string
}

func (w wrong) exact(c *spec.Config) float64 {
	return 0.8*math.Log(float64(c.Shape.Total())) - 0.1*math.Log2(float64(c.Plan.TP)) - 0.2*math.Log(float64(c.Shape.Nodes()))
}

func (w wrong) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	thr := 64 * math.Exp(w.exact(&c)+w.err(&c))
	width := math.Exp(stats.Normal90 * w.stated)
	return spec.Prediction{Throughput: thr, Lo: thr / width, Hi: thr * width, By: w.by}, nil
}

// independentErrors returns errors that differ between all configurations.
func independentErrors(sd float64) func(c *spec.Config) float64 {
	return func(c *spec.Config) float64 {
		return sd * stats.Stream(1, fmt.Sprint(c.Plan, c.Shape)).NormFloat64()
	}
}

// wrongFinder returns a finder with such predictions, and a job.
func wrongFinder(w wrong) (*Finder, spec.Cluster, *spec.Job) {
	c := spec.Cluster{Groups: []spec.NodeGroup{{Count: 4, Devices: 8, Accelerator: spec.Accelerator{Name: "x"}}}}
	var all []spec.Config
	for _, s := range [][]int{{1}, {2}, {1, 1}, {4}, {2, 2}, {1, 1, 1, 1}, {8}, {4, 4}, {2, 2, 2, 2}, {8, 8}, {4, 4, 4, 4}, {8, 8, 8, 8}} {
		shape := spec.NewShape(s...)
		for tp := 1; tp <= min(s[0], 8); tp *= 2 {
			dp := shape.Total() / tp
			for _, r := range []spec.Recompute{spec.RecomputeNone, spec.RecomputeFull} {
				p := spec.Plan{DP: dp, TP: tp, MicroBatch: 64 / dp, Recompute: r}
				all = append(all, spec.Config{Model: spec.Model{Name: "m"}, Accelerator: c.Groups[0].Accelerator, Plan: p.Normal(), Shape: shape})
			}
		}
	}
	f := NewFinder(policy.Deps{Oracle: planner.New(w, planner.Options{Space: planner.NewMeasured(all)})})
	f.Structured = true
	return f, c, &spec.Job{ID: "a", Model: spec.Model{Name: "m"}, GlobalBatch: 64, Devices: 8}
}

// errorsOf returns the root mean square and the mean of the errors of the candidates' speeds, in logarithms.
func errorsOf(t *testing.T, w wrong, f *Finder, c spec.Cluster, j *spec.Job) (rms, mean float64) {
	t.Helper()
	cv, err := f.Curve(t.Context(), c, j)
	if err != nil {
		t.Fatal(err)
	}
	for i := range cv.Configs {
		o := &cv.Configs[i]
		e := math.Log(o.Rate) - w.exact(&spec.Config{Plan: o.Plan, Shape: o.Shape})
		rms, mean = rms+e*e/float64(len(cv.Configs)), mean+e/float64(len(cv.Configs))
	}
	return math.Sqrt(rms), mean
}

// TestStructure: candidates of independent errors have less than half of them, and the fastest plans are not those that
// errors favour. What was observed of a candidate counts for those like it.
func TestStructure(t *testing.T) {
	const sd = 0.3
	w := wrong{independentErrors(sd), sd, spec.ByTable}
	f, c, j := wrongFinder(w)
	f.Structured = false
	rms, mean := errorsOf(t, w, f, c, j)
	f, c, j = wrongFinder(w)
	better, bias := errorsOf(t, w, f, c, j)
	t.Logf("errors %.3f, mean %.3f; of single predictions %.3f, %.3f", better, bias, rms, mean)
	if better > rms/2 || math.Abs(bias) > mean/2 {
		t.Errorf("want at most half of those of single predictions")
	}
	cv, err := f.Curve(t.Context(), c, j)
	if err != nil {
		t.Fatal(err)
	}
	submitted, err := f.AsSubmitted(t.Context(), c, j)
	if err != nil {
		t.Fatal(err)
	}
	eight := &cv.Configs[len(cv.Configs)/2]
	s := &scheduler.JobState{Job: j, Grant: &scheduler.Grant{}, Ran: scheduler.Ran{Steps: 1e4, Time: time.Duration(1e4 / (2 * eight.Rate) * 1e9)}}
	if !f.Observe(maps.All(map[*scheduler.JobState]*Config{s: eight})) {
		t.Fatal("no candidate changed")
	}
	now, err := f.Curve(t.Context(), c, j)
	if err != nil {
		t.Fatal(err)
	}
	if o := now.At(eight); o == nil || math.Abs(o.Rate/eight.Rate-2) > 0.01 {
		t.Errorf("%+v, want twice the speed of %+v as observed", o, eight)
	}
	for i := range now.Configs {
		if o := &now.Configs[i]; o.Shape != eight.Shape && o.Devices == eight.Devices {
			if was := cv.At(o); was != nil && o.Rate <= was.Rate {
				t.Errorf("%s: %g steps/s, want more than %g", o.Shape, o.Rate, was.Rate)
			}
		}
	}
	if again, err := f.AsSubmitted(t.Context(), c, j); err != nil || again.Configs[0].Rate <= submitted.Configs[0].Rate {
		t.Errorf("as submitted: %+v, %v, want more than %+v", again, err, submitted.Configs[0])
	}
	if others := f.progress.revision("m", 0, 1); others != f.progress.revision("m", 0, eight.Devices) || others == 0 {
		t.Errorf("revision %d of other numbers of devices, want that of the observed ones", others)
	}
	slow := spec.Plan{DP: 2, TP: 4, MicroBatch: 32, Recompute: spec.RecomputeFull}.Normal()
	s.Grant = &scheduler.Grant{Plan: slow, Shape: spec.NewShape(8)}
	held, err := f.Held(t.Context(), c, s, 0, now)
	if err != nil || now.At(held) != nil {
		t.Fatalf("%+v, %v, want a plan that is not in the curve", held, err)
	}
	config := spec.Config{Model: j.Model, Accelerator: c.Groups[0].Accelerator, Plan: slow, Shape: s.Grant.Shape}
	raw, err := w.Predict(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if held.Rate == raw.Throughput/64 || held.Spread >= raw.HalfWidth() {
		t.Errorf("%+v is held, want an estimate, not the prediction %+v", held, raw)
	}
}

// TestAlike: plans of one kind differ less with fewer devices, those of two kinds have the number of devices in common.
func TestAlike(t *testing.T) {
	config := func(tp, dp int) *spec.Config {
		return &spec.Config{Plan: spec.Plan{DP: dp, TP: tp, MicroBatch: 1}.Normal(), Shape: spec.NewShape(tp * dp)}
	}
	two, four, split := config(2, 1), config(2, 2), config(4, 1)
	common := math.Log(2)
	for _, pair := range []struct {
		a, b *spec.Config
		want parts
	}{
		{two, two, parts{1, common, 0, common, 1, 1}},
		{two, four, parts{1, common, 0, common, 0, 0}},
		{four, split, parts{0, 2 * common, 0, 0, 1, 0}},
	} {
		if got := alike(pair.a, pair.b); got != pair.want {
			t.Errorf("%s, %s: %v, want %v", pair.a.Plan, pair.b.Plan, got, pair.want)
		}
	}
}

// TestNoStructure: predictions stay as they are if they are certain, and if they are those of a model.
func TestNoStructure(t *testing.T) {
	for _, w := range []wrong{{independentErrors(0.3), 0, spec.ByTable}, {independentErrors(0.3), 0.3, "model"}} {
		f, c, j := wrongFinder(w)
		cv, err := f.Curve(t.Context(), c, j)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.structures) > 0 {
			t.Errorf("all speeds were asked for of %+v", w)
		}
		f, c, j = wrongFinder(w)
		f.Structured = false
		want, err := f.Curve(t.Context(), c, j)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Configs {
			if got := &cv.Configs[i]; got.Rate != want.Configs[i].Rate || got.Plan != want.Configs[i].Plan {
				t.Errorf("%+v, want %+v", got, want.Configs[i])
			}
		}
	}
}

// TestEmptyStructure: a model without predictions has no candidates, and a job on a number of devices that curves leave
// out has those of its own.
func TestEmptyStructure(t *testing.T) {
	w := wrong{independentErrors(0.3), 0.3, spec.ByTable}
	f, c, j := wrongFinder(w)
	other := *j
	other.Model.Name = "other"
	if cv, err := f.Curve(t.Context(), c, &other); err != nil || len(cv.Configs) > 0 {
		t.Errorf("%v, %v, want no candidates", cv.Configs, err)
	}
	for plan := range map[spec.Plan]bool{{}: true, spec.Plan{DP: 2, TP: 4, MicroBatch: 32}.Normal(): true} {
		j.Plan = plan
		set, err := f.AsSubmitted(t.Context(), c, j)
		if err != nil || len(set.Configs) == 0 || set.Blind || set.Configs[0].Spread > 0.3 {
			t.Errorf("%+v, %v, want estimates as submitted", set, err)
		}
	}
}
