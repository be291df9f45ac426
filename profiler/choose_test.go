package profiler

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// scripted is a family with gains that the test sets. Its model predicts by law.
type scripted struct {
	gain  func(have []spec.Measurement, c spec.Config) perfmodel.Gain
	calls map[string]int // of Gain, by model
}

func (f *scripted) family() perfmodel.Family {
	f.calls = map[string]int{}
	return perfmodel.Family{
		Name: "scripted",
		Fit: func(_ context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
			n := 0
			for m, err := range data {
				if err == nil && perfmodel.Usable(m) {
					n++
				}
			}
			if n == 0 {
				return nil, perfmodel.Card{}, perfmodel.ErrTooFewPoints
			}
			return lawful{}, perfmodel.Card{}, nil
		},
		Gain: func(_ context.Context, have []spec.Measurement, space, _ []spec.Config) ([]perfmodel.Gain, error) {
			f.calls[space[0].Model.Name]++
			out := make([]perfmodel.Gain, len(space))
			for i, c := range space {
				out[i] = f.gain(have, c)
			}
			return out, nil
		},
	}
}

// lawful predicts step times by law in fake_test.go.
type lawful struct{}

func (lawful) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	rate := float64(c.Plan.GlobalBatch()) / law(c)
	return spec.Prediction{Throughput: rate, Lo: rate / 1.1, Hi: rate * 1.1}, nil
}

func (lawful) MarshalBinary() ([]byte, error) { return nil, errors.ErrUnsupported }

func explained(t *testing.T, c Campaign, o Options, n int) (State, []Step) {
	t.Helper()
	s, steps, err := Explain(context.Background(), c, o, n)
	if err != nil {
		t.Fatal(err)
	}
	return s, steps
}

func names(steps []Step) []string {
	out := make([]string, len(steps))
	for i, s := range steps {
		p := s.Point.Config.Plan
		p.Precision = ""
		out[i] = s.Point.Config.Model.Name + " " + strings.NewReplacer("tp=1,", "", "pp=1,", "", ",ga=1", "").Replace(p.String())
	}
	return out
}

func TestAdaptiveTakesTheGreatestGain(t *testing.T) {
	f := &scripted{gain: func(have []spec.Measurement, c spec.Config) perfmodel.Gain {
		for _, m := range have {
			if m.Config == c {
				return perfmodel.Gain{HalfWidth: 0.05}
			}
		}
		g := perfmodel.Gain{HalfWidth: 0.3, Fall: 0.01 * float64(c.Plan.MicroBatch)}
		if c.Model.Name == "b" {
			g.Fall *= 3
		}
		return g
	}}
	o, _ := options(t, &memorySink{})
	o.Family = f.family()
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4), tinyModel("b", 4)}, Space: Space{MicroBatch: []int{1, 2, 4}}}
	state, steps := explained(t, c, o, 99)
	// The first point of each model, then gains of 3*2, 1*2 and 3*1 hundredths: b before a.
	want := []string{"a dp=1,mb=4", "b dp=1,mb=4", "b dp=1,mb=2", "b dp=1,mb=1", "a dp=1,mb=2", "a dp=1,mb=1"}
	if got := names(steps); !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	if f.calls["a"] != 4 || f.calls["b"] != 4 {
		t.Errorf("%v gains worked out, want 4 of each: at first, and after each of its rows", f.calls)
	}
	if s := steps[2]; math.Abs(s.Gain-0.06) > 1e-12 || s.HalfWidth != 0.3 || s.Seconds < launchCPU ||
		s.Why != "mean interval of b from ±24.2 % to about ±17 %; ±35 % here" {
		t.Errorf("step %+v", s)
	}
	if steps[0].Why != "first of a" {
		t.Errorf("first step: %q", steps[0].Why)
	}
	if state.Done != 0 || state.Stopped != "" || state.Points != 6 || state.ETASec < 6*launchCPU || state.Models[0].Warning != "nothing measured yet" {
		t.Errorf("state %+v", state)
	}
}

// TestModelsFittedTogether: a family that is fitted to all models at once has one gain for all, and no model goes first.
func TestModelsFittedTogether(t *testing.T) {
	f := &scripted{gain: func(have []spec.Measurement, c spec.Config) perfmodel.Gain {
		g := perfmodel.Gain{HalfWidth: 0.3 / float64(1+len(have)), Fall: 0.01 * float64(c.Plan.MicroBatch)}
		if c.Model.Name == "b" {
			g.Fall *= 10
		}
		return g
	}}
	o, _ := options(t, &memorySink{})
	o.Family = f.family()
	conditioned := 0
	o.Family.Condition = func(_ context.Context, rows []spec.Measurement) (perfmodel.Fitted, error) {
		conditioned = len(rows)
		return lawful{}, nil
	}
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4), tinyModel("b", 4)}, Space: Space{MicroBatch: []int{1, 2, 4, 8, 16}}}
	_, steps := explained(t, c, o, 6)
	// After four points of b, it is a's turn.
	if got, want := names(steps), []string{"b dp=1,mb=16", "b dp=1,mb=8", "b dp=1,mb=4", "b dp=1,mb=2", "a dp=1,mb=16", "b dp=1,mb=1"}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	if f.calls["a"] != 7 || f.calls["b"] != 0 || conditioned != 6 {
		t.Errorf("%v gains worked out, %d rows fitted; want one of all models at first and after each of 6 rows", f.calls, conditioned)
	}
	if steps[4].Why != "first of a" || steps[0].Why != "first of b" || steps[1].Why != "mean interval of all 2 models from ±16.2 % to about ±0 %; ±16.2 % here" {
		t.Errorf("reasons %q, %q", steps[0].Why, steps[1].Why)
	}
}

// TestWantedPlans: the gain is that of the wanted plans, for every model and sequence length, on any devices.
func TestWantedPlans(t *testing.T) {
	o, _ := options(t, &memorySink{})
	var wanted []spec.Config
	o.Family = perfmodel.Family{
		Unfitted: lawful{},
		Gain: func(_ context.Context, _ []spec.Measurement, space, of []spec.Config) ([]perfmodel.Gain, error) {
			wanted = of
			return slices.Repeat([]perfmodel.Gain{{HalfWidth: 0.5, Fall: 0.05}}, len(space)), nil
		},
	}
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4)}, Space: Space{SeqLens: []int{32, 64}, MicroBatch: []int{1, 2}}}
	o.For = []Wanted{{spec.Plan{TP: 2, MicroBatch: 4}, spec.NewShape(2)}, {spec.Plan{TP: 3, MicroBatch: 4}, spec.NewShape(3)}, {spec.Plan{DP: 16, MicroBatch: 1}, spec.NewShape(8, 8)}}
	_, steps := explained(t, c, o, 2)
	var got []string
	for _, c := range wanted {
		got = append(got, fmt.Sprintf("%d: %s on %s, %d CPUs", c.Seq(), c.Plan, c.Shape, c.Shape.CPUs))
	}
	want := []string{"32: dp=1,tp=2,pp=1,mb=4,ga=1,precision=fp32 on 2, 2 CPUs", "32: dp=16,tp=1,pp=1,mb=1,ga=1,precision=fp32 on 2x8, 16 CPUs",
		"64: dp=1,tp=2,pp=1,mb=4,ga=1,precision=fp32 on 2, 2 CPUs", "64: dp=16,tp=1,pp=1,mb=1,ga=1,precision=fp32 on 2x8, 16 CPUs"}
	if !slices.Equal(got, want) {
		t.Errorf("wanted %q, want %q: three heads cannot be split", got, want)
	}
	if why := "mean interval of 4 wanted plans from ±10 % to about ±4.64 %; ±64.9 % here"; steps[1].Why != why {
		t.Errorf("reason %q, want %q", steps[1].Why, why)
	}
	o.For = o.For[1:2]
	if _, _, err := Explain(t.Context(), c, o, 1); err == nil || !strings.Contains(err.Error(), "campaign c: none of the 1 wanted plans can run: plan dp=1,tp=3") {
		t.Errorf("a plan that no model can run: %v", err)
	}
}

// TestGainPerCost: all gains are equal; time decides if wall time is limited, and device-time if device-hours
// are limited.
func TestGainPerCost(t *testing.T) {
	f := &scripted{gain: func([]spec.Measurement, spec.Config) perfmodel.Gain { return perfmodel.Gain{HalfWidth: 0.3, Fall: 0.1} }}
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4)}, Space: Space{
		Shapes: []spec.Shape{spec.NewShape(1), spec.NewShape(2)}, MicroBatch: []int{2048, 8192}, Plans: []spec.Plan{{DP: 2, MicroBatch: 512}}}}
	o, _ := options(t, &memorySink{})
	o.Family = f.family()
	o.Machine.Accelerator.MemBytes = 0
	for _, tc := range []struct {
		budget Budget
		first  string
		why    string
	}{
		{Budget{}, "a dp=1,mb=2048", ""},
		{Budget{Points: 2}, "a dp=1,mb=2048", ""},
		{Budget{Points: 3, Wall: 24 * time.Hour}, "a dp=1,mb=2048", ""},
		{Budget{Points: 300, Wall: 500 * time.Second}, "a dp=2,mb=512", ", most per second"},
		{Budget{Points: 300, DeviceHours: 0.4}, "a dp=2,mb=512", ", most per device-second"},
	} {
		c.Budget = tc.budget
		_, steps := explained(t, c, o, 2)
		if len(steps) < 2 || names(steps)[0] != tc.first || tc.why != "" && !strings.Contains(steps[1].Why, tc.why) {
			t.Errorf("%+v: %q (%+v), want %s first, then one %q", tc.budget, names(steps), steps, tc.first, tc.why)
		}
	}
}

// TestFailuresLoseWeight: a model that always crashes does not use up the budget.
func TestFailuresLoseWeight(t *testing.T) {
	f := &scripted{gain: func(have []spec.Measurement, c spec.Config) perfmodel.Gain {
		fall := 1.0
		for _, m := range have {
			if m.Outcome == spec.OK {
				fall /= 2
			}
		}
		return perfmodel.Gain{HalfWidth: 1, Fall: fall}
	}}
	var sink memorySink
	o, l := options(t, &sink)
	o.Family = f.family()
	l.outcome = func(c spec.Config) spec.Outcome {
		if c.Model.Name == "a" {
			return spec.Failed
		}
		return spec.OK
	}
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4), tinyModel("b", 4)}, Budget: Budget{Points: 12},
		Space: Space{MicroBatch: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}}
	s, err := Run(context.Background(), c, o)
	if err != nil || s.ByOutcome[spec.Failed] != 6 || s.ByOutcome[spec.OK] != 6 {
		t.Errorf("%v, %v; want half of 12 points spent on the model that fails", s.ByOutcome, err)
	}
}

func TestWidestIntervalWithoutGain(t *testing.T) {
	var sink memorySink
	o, _ := options(t, &sink)
	o.Family = rubick(t)
	o.Family.Gain = nil
	c := smallCampaign(Adaptive)
	c.Budget.Points = 12
	mustRun(t, c, o)
	reasons := map[string]int{}
	for _, m := range sink.rows {
		reasons[strings.SplitAfter(m.Env[EnvWhy], ": ")[0]]++
	}
	if reasons["first of a"] != 1 || reasons["first of b"] != 1 || reasons["widest interval of a: "]+reasons["widest interval of b: "] < 6 {
		t.Errorf("reasons %v", reasons)
	}
}

// TestLargerPointsAreSkipped: a point that needs at least as much as one that ran out of memory or time is not
// tried, and is reported as skipped.
func TestLargerPointsAreSkipped(t *testing.T) {
	for _, outcome := range []spec.Outcome{spec.OOM, spec.Timeout} {
		var sink memorySink
		o, l := options(t, &sink)
		l.outcome = func(c spec.Config) spec.Outcome {
			if c.Plan.MicroBatch >= 2 && c.Seq() >= 128 {
				return outcome
			}
			return spec.OK
		}
		c := Campaign{Name: "c", Choose: Grid, Models: []spec.Model{tinyModel("a", 4)},
			Space: Space{SeqLens: []int{64, 128, 256}, MicroBatch: []int{1, 2, 4}, AccumSteps: []int{1, 2}}}
		s := mustRun(t, c, o)
		// 8 of 18 points have mb >= 2 and seq >= 128 and fail. The first of them in canonical order (mb=2,
		// ga=1, 128 tokens) rules out the other 7.
		if s.ByOutcome[outcome] != 1 || s.ByOutcome[spec.OK] != 10 || s.Skipped != 7 || len(s.Skips) != 7 || s.Stopped != "no point is left: 11 points measured, 7 skipped" {
			t.Errorf("%s: %v, %d skipped, stopped %q; want 10 ok, 1, 7 skipped", outcome, s.ByOutcome, s.Skipped, s.Stopped)
		}
		for _, r := range s.Skips {
			if r.Group != ForOutcome || !strings.Contains(r.Why, "mb=2,ga=1,precision=fp32, 128 tokens) ended with "+string(outcome)) {
				t.Errorf("skip %+v", r)
			}
		}
	}
}

func TestAsksMore(t *testing.T) {
	base := spec.Config{Model: tinyModel("a", 4), SeqLen: 64, Plan: spec.Plan{DP: 2, MicroBatch: 2, AccumSteps: 2}, Shape: spec.NewShape(2)}
	change := func(f func(c *spec.Config)) spec.Config { c := base; f(&c); return c }
	for name, tc := range map[string]struct {
		c    spec.Config
		want bool
	}{
		"itself":             {base, true},
		"larger micro-batch": {change(func(c *spec.Config) { c.Plan.MicroBatch = 4 }), true},
		"longer":             {change(func(c *spec.Config) { c.SeqLen = 128 }), true},
		"more accumulation":  {change(func(c *spec.Config) { c.Plan.AccumSteps = 8 }), true},
		"smaller":            {change(func(c *spec.Config) { c.Plan.MicroBatch = 1; c.SeqLen = 640 }), false},
		"recompute":          {change(func(c *spec.Config) { c.Plan.Recompute = spec.RecomputeFull; c.Plan.MicroBatch = 4 }), false},
		"other split":        {change(func(c *spec.Config) { c.Plan.DP, c.Plan.TP = 1, 2 }), false},
		"other model":        {change(func(c *spec.Config) { c.Model.Name = "b" }), false},
		"other shape":        {change(func(c *spec.Config) { c.Shape = spec.NewShape(1, 1) }), false},
	} {
		if got := needsAtLeast(IdentityOf(tc.c), IdentityOf(base)); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestUntilStopsTheRun: the run ends when nine in ten intervals of every model are narrow enough.
func TestUntilStopsTheRun(t *testing.T) {
	f := &scripted{gain: func(have []spec.Measurement, c spec.Config) perfmodel.Gain {
		g := perfmodel.Gain{HalfWidth: 1, Fall: 0.1}
		for _, m := range have {
			if m.Config.Model == c.Model {
				g.HalfWidth *= 0.5 // 3 rows: 0.125, within ln 1.15
			}
		}
		if c.Plan.MicroBatch == 10 {
			g.HalfWidth = 5 // one in ten may be wide
		}
		return g
	}}
	var sink memorySink
	o, _ := options(t, &sink)
	o.Family = f.family()
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4), tinyModel("b", 4)},
		Space: Space{MicroBatch: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, Until: Until{Interval: 0.15}}
	s, err := Run(context.Background(), c, o)
	if err != nil || s.Done != 6 || s.Stopped != "the intervals are within 15 % of the predictions" {
		t.Errorf("%d points, stopped %q, %v; want 3 of each model", s.Done, s.Stopped, err)
	}
	if s.Models[0].HalfWidth != 0.125 || s.Models[0].Done != 3 || s.Models[0].Points != 10 {
		t.Errorf("%+v", s.Models[0])
	}
}

// TestUntilPassesModelsThatCannotRun: models without a runnable point do not count.
func TestUntilPassesModelsThatCannotRun(t *testing.T) {
	f := &scripted{gain: func([]spec.Measurement, spec.Config) perfmodel.Gain { return perfmodel.Gain{HalfWidth: 0.1, Fall: 0.1} }}
	o, l := options(t, &memorySink{})
	o.Family = f.family()
	l.outcome = func(c spec.Config) spec.Outcome {
		if c.Model.Name == "a" {
			return spec.OOM
		}
		return spec.OK
	}
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4), tinyModel("b", 4)}, Space: Space{MicroBatch: []int{1, 2}}, Until: Until{Interval: 0.15}}
	s, err := Run(context.Background(), c, o)
	if err != nil || !strings.HasPrefix(s.Stopped, "the intervals are within") || s.Models[0].Warning != "none of its points can be run" {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestBadFamilies: an invalid result of a family is a warning and does not end the run.
func TestBadFamilies(t *testing.T) {
	for name, gain := range map[string]func(context.Context, []spec.Measurement, []spec.Config, []spec.Config) ([]perfmodel.Gain, error){
		"few": func(context.Context, []spec.Measurement, []spec.Config, []spec.Config) ([]perfmodel.Gain, error) {
			return nil, nil
		},
		"errors": func(context.Context, []spec.Measurement, []spec.Config, []spec.Config) ([]perfmodel.Gain, error) {
			return nil, errors.New("no")
		},
		"NaN": func(_ context.Context, _ []spec.Measurement, space, _ []spec.Config) ([]perfmodel.Gain, error) {
			return slices.Repeat([]perfmodel.Gain{{HalfWidth: math.NaN(), Fall: math.NaN()}}, len(space)), nil
		},
	} {
		var sink memorySink
		o, _ := options(t, &sink)
		o.Family = perfmodel.Family{Name: name, Gain: gain}
		s, err := Run(context.Background(), smallCampaign(Adaptive), o)
		if err != nil || s.Done != 36 || s.Models[0].Warning == "" || s.Models[0].HalfWidth != 0 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	o, _ := options(t, &memorySink{})
	o.Family = perfmodel.Family{}
	if s, err := Run(context.Background(), smallCampaign(Adaptive), o); err != nil || s.Done != 36 {
		t.Errorf("no family: %+v, %v", s, err)
	}
}

// TestMemoryDoubtHalvesTheGain: a point that may not fit in memory has half the score.
func TestMemoryDoubtHalvesTheGain(t *testing.T) {
	f := &scripted{gain: func(_ []spec.Measurement, c spec.Config) perfmodel.Gain {
		return perfmodel.Gain{HalfWidth: 0.3, Fall: 0.1 * math.Sqrt(float64(c.Plan.MicroBatch))}
	}}
	o, _ := options(t, &memorySink{})
	o.Family = f.family()
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4)}, Space: Space{MicroBatch: []int{1 << 11, 1 << 12}}}
	share, _ := memoryShare(o.Machine.config(c.Models[0], 0, spec.NewShape(1), spec.Plan{MicroBatch: 1 << 12}, 0))
	for _, tc := range []struct {
		room float64 // device memory over the estimate of the larger point
		want string
	}{{1.1, "a dp=1,mb=4096"}, {0.8, "a dp=1,mb=2048"}} {
		o.Machine = cpuMachine(1)
		o.Machine.Accelerator.MemBytes *= share * tc.room
		if _, steps := explained(t, c, o, 1); names(steps)[0] != tc.want {
			t.Errorf("with %g of the memory: %q first, want %s", tc.room, names(steps), tc.want)
		}
	}
}
