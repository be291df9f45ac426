package profiler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestFullDisk: the run stops, acknowledged rows are intact, and once there is space it continues with the lost
// point.
func TestFullDisk(t *testing.T) {
	sink := memorySink{limit: 5}
	o, l := options(t, &sink)
	c := smallCampaign(Grid)
	s, err := Run(context.Background(), c, o)
	if !errors.Is(err, errFull) || s.Done != 5 || len(sink.rows) != 5 || s.Stopped != "error" {
		t.Fatalf("%d points, %d rows, stopped %q, %v; want 5, 5, an error that says why", s.Done, len(sink.rows), s.Stopped, err)
	}
	want := "profiler: campaign small, run 1: storing point 6: sink: no space left; the 5 points before it are stored, run again to continue"
	if err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if l.runs != 6 {
		t.Errorf("%d points were run, want 6 and no more", l.runs)
	}
	sink.limit, o.Rows = 0, slices.Clone(sink.rows)
	if s, err = Run(context.Background(), c, o); err != nil || s.Done != 36 {
		t.Fatal(s, err)
	}
	for i, n := range numbersOf(sink.rows) {
		if n != i+1 {
			t.Errorf("row %d is point %d", i, n)
		}
	}
}

func TestRunnerThatCannotMeasure(t *testing.T) {
	var sink memorySink
	o, l := options(t, &sink)
	l.before = func(run int) error {
		if run == 3 {
			return fmt.Errorf("runner: python3 has no torch: apt install python3-torch: %w", ErrSetup)
		}
		return nil
	}
	s, err := Run(context.Background(), smallCampaign(Grid), o)
	if !errors.Is(err, ErrSetup) || s.Done != 3 || len(sink.rows) != 3 || s.Stopped != "error" ||
		!strings.HasPrefix(err.Error(), "profiler: campaign small, run 1: point 4 (a on TestCPU, dp=1,") || !strings.Contains(err.Error(), "apt install") {
		t.Errorf("%d points, %d rows, stopped %q, %v", s.Done, len(sink.rows), s.Stopped, err)
	}
}

// TestInterrupted: between points, during a point (its result is lost), and during a point that was still
// measured.
func TestInterrupted(t *testing.T) {
	for name, tc := range map[string]struct {
		fails bool
		rows  int
	}{"lost": {true, 2}, "kept": {false, 3}} {
		var sink memorySink
		o, l := options(t, &sink)
		ctx, cancel := context.WithCancel(context.Background())
		l.before = func(run int) error {
			if run == 2 {
				cancel()
				if tc.fails {
					return ctx.Err()
				}
			}
			return nil
		}
		s, err := Run(ctx, smallCampaign(Adaptive), o)
		if !errors.Is(err, context.Canceled) || s.Stopped != Interrupted || s.Done != tc.rows || len(sink.rows) != tc.rows {
			t.Errorf("%s: %d points, %d rows, stopped %q, %v; want %d", name, s.Done, len(sink.rows), s.Stopped, err, tc.rows)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o, l := options(t, &memorySink{})
	if _, err := Run(ctx, smallCampaign(Grid), o); !errors.Is(err, context.Canceled) || l.runs != 0 {
		t.Errorf("%v after %d points, want none", err, l.runs)
	}
}

// TestResultsNoStoreKeeps: invalid results become failed points that say so.
func TestResultsNoStoreKeeps(t *testing.T) {
	for name, m := range map[string]spec.Measurement{
		"NaN":        {Outcome: spec.OK, StepSec: []float64{1, math.NaN()}},
		"nothing":    {Outcome: spec.OK},
		"no outcome": {StepSec: []float64{1}},
		"memory":     {Outcome: spec.OK, StepSec: []float64{1}, PeakBytes: math.Inf(1)},
	} {
		var sink memorySink
		o, _ := options(t, &sink)
		o.Runner = always{m}
		c := smallCampaign(Grid)
		c.Budget.Points = 1
		mustRun(t, c, o)
		got := sink.rows[0]
		if err := got.Validate(); err != nil || got.Outcome != spec.Failed || !strings.HasPrefix(got.Reason, "the runner's result is not a valid measurement: ") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestTextsNoStoreKeeps: invalid texts are repaired. A measurement is kept even if a process name contains part
// of a letter.
func TestTextsNoStoreKeeps(t *testing.T) {
	var sink memorySink
	o, _ := options(t, &sink)
	o.Machine.Env["driver"] = "5\xff"
	o.Runner = always{spec.Measurement{
		Outcome: spec.OK, StepSec: []float64{1}, Reason: "\xff", Doubt: "shared with \xc3",
		PhaseSec: map[string]float64{"forward": 0.5, "wait": math.NaN(), "other": math.Inf(1), "\xff": 1},
		Env:      map[string]string{EnvShared: "pid 7 (caf\xc3)", "\xfe": "x"},
	}}
	c := smallCampaign(Grid)
	c.Budget.Points = 1
	mustRun(t, c, o)
	m := sink.rows[0]
	if m.Outcome != spec.OK || len(m.PhaseSec) != 1 || m.PhaseSec["forward"] != 0.5 || m.Doubt != "shared with \uFFFD" ||
		m.Reason != "\uFFFD" || m.Env[EnvShared] != "pid 7 (caf\uFFFD)" || m.Env["\uFFFD"] != "x" || m.Env["driver"] != "5\uFFFD" {
		t.Errorf("%+v", m)
	}
}

// TestNothingRuns: if all points fail for the same reason, the run ends and the rest of the budget is not used.
func TestNothingRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		reason func(n int) string // "" = OK
		runner string
		done   int
	}{
		"alike":        {func(n int) string { return fmt.Sprintf("CUDA error at 0x%x: rank %d", 1<<n, n) }, "", 5},
		"of a table":   {func(int) string { return "no" }, RunnerReplay, 36},
		"two reasons":  {func(n int) string { return []string{"no", "nay"}[n%2] }, "", 36},
		"one that ran": {func(n int) string { return []string{"no", "no", "no", "no", "", "no"}[min(n, 5)] }, "", 36},
	} {
		var sink memorySink
		o, l := options(t, &sink)
		o.Runner = &failing{l, tc.reason, 0}
		c := smallCampaign(Grid)
		c.Runner.Name = tc.runner
		s, err := Run(context.Background(), c, o)
		if s.Done != tc.done || len(sink.rows) != tc.done || errors.Is(err, ErrSetup) != (tc.done == 5) {
			t.Errorf("%s: %d points, %d rows, %v; want %d", name, s.Done, len(sink.rows), err, tc.done)
		}
		if name != "alike" {
			continue
		}
		o.Rows = slices.Clone(sink.rows)
		if s, err := Run(context.Background(), c, o); s.Done != 10 || !errors.Is(err, ErrSetup) || !strings.Contains(err.Error(), "rank 9") {
			t.Errorf("again: %d points, %v; want 10", s.Done, err)
		}
		o.Runner, o.Rows = l, slices.Clone(sink.rows)
		if s, err := Run(context.Background(), c, o); s.Done != 36 || err != nil {
			t.Errorf("mended: %d points, %v; want 36", s.Done, err)
		}
	}
}

// failing fails with given reasons.
type failing struct {
	Runner
	reason func(n int) string
	n      int
}

func (f *failing) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	m, err := f.Runner.Run(ctx, c)
	if why := f.reason(f.n); why != "" {
		m.Outcome, m.Reason, m.StepSec = spec.Failed, why, nil
	}
	f.n++
	return m, err
}

// always returns the same measurement.
type always struct{ m spec.Measurement }

func (a always) Run(context.Context, spec.Config) (spec.Measurement, error) { return a.m, nil }

func TestAnotherMachineOrModelIsRefused(t *testing.T) {
	var sink memorySink
	o, l := options(t, &sink)
	c := smallCampaign(Grid)
	c.Budget.Points = 2
	mustRun(t, c, o)
	o.Rows = sink.rows
	other := c
	other.Models = slices.Clone(c.Models)
	other.Models[0].Layers = 8
	if _, err := Run(context.Background(), other, o); err == nil || !strings.HasSuffix(err.Error(), "a model a with other values than now: give the model another name") {
		t.Errorf("a model with more layers: %v", err)
	}
	o.Machine.Accelerator.Name = "H100"
	_, err := Run(context.Background(), c, o)
	want := "profiler: campaign small: run 1 was measured on TestCPU with pacer-torch, here is H100 with pacer-torch: give this run another label"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	o.Machine.Accelerator.Name, o.Machine.Framework = "TestCPU", "other"
	if _, err := Run(context.Background(), c, o); err == nil || !strings.Contains(err.Error(), "with pacer-torch, here is TestCPU with other") {
		t.Error(err)
	}
	o.Label = "two"
	if s, err := Run(context.Background(), c, o); err != nil || s.Done != 2 || s.Label != "two" || l.runs != 4 {
		t.Errorf("under another label: %+v, %v", s, err)
	}
	if got := sink.rows[2].Origin; got != "small#two/1" {
		t.Errorf("origin %q, want small#two/1", got)
	}
}

// TestAnotherStackIsRefused: rows of one run have one version of torch, and either all are compiled or none.
func TestAnotherStackIsRefused(t *testing.T) {
	var sink memorySink
	o, _ := options(t, &sink)
	c := smallCampaign(Grid)
	c.Budget.Points = 2
	mustRun(t, c, o)
	row := func(outcome spec.Outcome, facts ...string) spec.Measurement {
		m := sink.rows[0]
		m.Outcome, m.Env = outcome, map[string]string{EnvRun: "1", EnvPoint: "1", EnvWall: "1"}
		if outcome != spec.OK {
			m.StepSec = nil
		}
		for i := 0; i < len(facts); i += 2 {
			m.Env[facts[i]] = facts[i+1]
		}
		return m
	}
	const compiled, not = "was measured with compile: true, now it is false", "was measured with compile: false, now it is true"
	for name, tc := range map[string]struct {
		row     spec.Measurement
		torch   string
		compile bool
		runner  string
		want    string // "" = continues
	}{
		"same":              {row(spec.OK, "torch", "1.13"), "1.13", false, "", ""},
		"other torch":       {row(spec.OK, "torch", "1.13"), "2.6", false, "", "was measured with torch 1.13, here is 2.6: give"},
		"unknown here":      {row(spec.OK, "torch", "1.13"), "", false, "", ""},
		"unknown there":     {row(spec.Failed), "2.6", false, "", ""},
		"compiled":          {row(spec.OK, "used_compile", "each layer"), "2.6", true, "", ""},
		"no more":           {row(spec.OOM, "used_compile", "each layer"), "2.6", false, "", compiled},
		"not yet":           {row(spec.OK), "2.6", true, "", not},
		"failed before":     {row(spec.OOM), "2.6", true, "", ""},
		"rows of the table": {row(spec.OK, "used_compile", "each layer", "torch", "1"), "2.6", false, RunnerReplay, ""},
	} {
		o.Rows = []spec.Measurement{tc.row}
		o.Machine.Env = map[string]string{"torch": tc.torch}
		c.Point.Compile, c.Runner.Name = tc.compile, tc.runner
		_, err := Run(context.Background(), c, o)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// TestRowsOutsideTheSpace: after a change of the campaign, earlier measurements outside the new space count
// against the budget but are not points.
func TestRowsOutsideTheSpace(t *testing.T) {
	var sink memorySink
	o, _ := options(t, &sink)
	c := smallCampaign(Grid)
	c.Budget.Points = 4
	mustRun(t, c, o)
	c.Models = c.Models[1:] // the grid began with the other model
	c.Budget.Points = 6
	o.Rows = slices.Clone(sink.rows)
	s, err := Run(context.Background(), c, o)
	if err != nil || s.Done != 6 || s.Points != 18 || len(s.Models) != 1 || s.Models[0].Done != 2 || s.ByOutcome[spec.OK] != 6 {
		t.Errorf("%+v, %v; want 6 done, 2 of them of the 18 points", s, err)
	}
}

// TestReuse: rows of other runs are used in fits but are not done.
func TestReuse(t *testing.T) {
	var sink memorySink
	o, _ := options(t, &sink)
	c := smallCampaign(Adaptive)
	c.Budget.Points = 10
	mustRun(t, c, o)
	o.Label, o.Rows = "2", sink.rows
	alone, first := explained(t, c, o, 1)
	o.Reuse = true
	reused, next := explained(t, c, o, 1)
	if alone.Done != 0 || reused.Done != 0 || alone.Models[0].HalfWidth != 0 || reused.Models[0].HalfWidth == 0 {
		t.Errorf("without reuse %+v\nwith %+v", alone, reused)
	}
	if first[0].Why != "first of a" || next[0].Why == "first of a" {
		t.Errorf("without reuse %q, with %q", first[0].Why, next[0].Why)
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *Campaign, o *Options)
		want   string
	}{
		"runner": {func(c *Campaign, o *Options) { o.Runner = nil }, "profiler: no runner"},
		"sink":   {func(c *Campaign, o *Options) { o.Sink = nil }, "profiler: no sink"},
		"label":  {func(c *Campaign, o *Options) { o.Label = "a#b" }, `profiler: label "a#b" is not`},
		"name":   {func(c *Campaign, o *Options) { c.Name = "a/b" }, `profiler: campaign name "a/b" is not`},
		"order":  {func(c *Campaign, o *Options) { c.Choose = "best" }, `profiler: campaign small: order "best" is not`},
		"space":  {func(c *Campaign, o *Options) { c.Models = nil }, "profiler: campaign small has no models"},
	} {
		c := smallCampaign(Grid)
		o, _ := options(t, &memorySink{})
		tc.change(&c, &o)
		if _, err := Run(context.Background(), c, o); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	o, _ := options(t, &memorySink{})
	if _, _, err := Explain(context.Background(), smallCampaign(Grid), o, -1); err == nil {
		t.Error("-1 points explained")
	}
}

// TestDamagedRows: rows with invalid numbers and times still count as done.
func TestDamagedRows(t *testing.T) {
	var sink memorySink
	o, _ := options(t, &sink)
	c := smallCampaign(Grid)
	c.Budget.Points = 3
	mustRun(t, c, o)
	for i := range sink.rows {
		sink.rows[i].Env = map[string]string{EnvRun: "1", EnvPoint: []string{"x", "-4", ""}[i], EnvWall: []string{"NaN", "", "-3"}[i]}
	}
	o.Rows, c.Budget.Points = slices.Clone(sink.rows), 5
	s, err := Run(context.Background(), c, o)
	if err != nil || s.Done != 5 || len(sink.rows) != 5 || pointNumber(sink.rows[4]) != 5 || s.WallSec < 8 || s.WallSec > 20 {
		t.Errorf("%+v, %v, last is point %d", s, err, pointNumber(sink.rows[4]))
	}
}

// TestExplainMeasuresNothing: it measures nothing, and predicts what a run then does.
func TestExplainMeasuresNothing(t *testing.T) {
	var sink memorySink
	o, l := options(t, &sink)
	c := smallCampaign(Adaptive)
	c.Budget.Points = 7
	_, steps := explained(t, c, o, 99)
	if len(steps) != 7 || l.runs != 0 || len(sink.rows) != 0 {
		t.Fatalf("%d steps explained, %d points run", len(steps), l.runs)
	}
	mustRun(t, c, o)
	if sink.rows[0].Config != steps[0].Point.Config {
		t.Errorf("%s was to come first, %s did", steps[0].Point.Config.Plan, sink.rows[0].Config.Plan)
	}
	o.Rows = sink.rows
	if s, steps := explained(t, c, o, 3); len(steps) != 0 || s.Stopped != "budget spent: 7 points" {
		t.Errorf("after the run: %q, next %v", s.Stopped, names(steps))
	}
}
