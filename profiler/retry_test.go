package profiler

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// unlucky is a Runner that changes the measurements of another one. change gets the number of runs of the configuration.
type unlucky struct {
	*lab
	tries  map[Identity]int
	change func(m *spec.Measurement, try int)
}

func (u *unlucky) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	m, err := u.lab.Run(ctx, c)
	id := IdentityOf(c)
	u.tries[id]++
	u.change(&m, u.tries[id])
	return m, err
}

func unluckyOptions(t *testing.T, sink *memorySink, change func(m *spec.Measurement, try int)) Options {
	o, l := options(t, sink)
	o.Runner = &unlucky{l, map[Identity]int{}, change}
	return o
}

// killed makes m the row of a worker that another process killed.
func killed(m *spec.Measurement) {
	m.Outcome, m.StepSec, m.Reason = spec.Failed, nil, "killed by another process"
	m.Env[EnvExternal] = m.Reason
}

func widest(m *spec.Measurement) bool { return m.Config.Plan.MicroBatch == 4 }

// TestRetries: points that failed from outside or are in doubt are measured once more, after all others, and count once.
// Other failures are not.
func TestRetries(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *spec.Measurement, try int)
		rows   int // of the 36 points, 12 have the widest micro-batch
		ok     int
	}{
		"killed once": {func(m *spec.Measurement, try int) {
			if widest(m) && try == 1 {
				killed(m)
			}
		}, 48, 36},
		"killed always": {func(m *spec.Measurement, _ int) {
			if widest(m) {
				killed(m)
			}
		}, 48, 24},
		"in doubt once": {func(m *spec.Measurement, try int) {
			if widest(m) && try == 1 {
				m.Doubt = "another process used the device"
			}
		}, 48, 36},
		"the plan's fault": {func(m *spec.Measurement, _ int) {
			if widest(m) {
				m.Outcome, m.StepSec, m.Reason = spec.Failed, nil, "loss is NaN"
			}
		}, 36, 24},
		"no memory beside another process": {func(m *spec.Measurement, try int) {
			if widest(m) && try == 1 {
				m.Outcome, m.StepSec, m.Reason = spec.OOM, nil, "out of memory"
				m.Env[EnvShared] = "3 GiB of python3"
			}
		}, 48, 36},
	} {
		for _, order := range []Order{Grid, Adaptive} {
			var sink memorySink
			s, err := Run(context.Background(), smallCampaign(order), unluckyOptions(t, &sink, c.change))
			if err != nil || len(sink.rows) != c.rows || s.Done != 36 || s.ByOutcome[spec.OK] != c.ok || s.Stopped != "every point is measured" {
				t.Errorf("%s, %s: %d rows, %d points done, %v, %q, %v; want %d rows, 36 points, %d ok",
					name, order, len(sink.rows), s.Done, s.ByOutcome, s.Stopped, err, c.rows, c.ok)
			}
			for i, m := range sink.rows {
				if again := strings.HasPrefix(m.Env[EnvWhy], "again, "); again != (i >= 36) {
					t.Errorf("%s, %s: row %d is chosen by %q", name, order, i+1, m.Env[EnvWhy])
				}
			}
			if n := len(Latest(sink.rows)); n != 36 {
				t.Errorf("%s, %s: %d latest rows, want 36", name, order, n)
			}
		}
	}
}

// TestRetriesResume: retries are neither lost nor repeated when a run continues after any number of rows.
func TestRetriesResume(t *testing.T) {
	c := smallCampaign(Grid)
	c.Models = c.Models[:1]
	fail := func(m *spec.Measurement, try int) {
		if widest(m) && try == 1 {
			killed(m)
		}
	}
	var whole memorySink
	mustRun(t, c, unluckyOptions(t, &whole, fail))
	for cut := range whole.rows {
		sink := memorySink{}
		o := unluckyOptions(t, &sink, fail)
		o.Rows = whole.rows[:cut]
		for _, m := range o.Rows {
			o.Runner.(*unlucky).tries[IdentityOf(m.Config)]++
		}
		s, err := Run(context.Background(), c, o)
		if err != nil || cut+len(sink.rows) != len(whole.rows) || s.Done != 18 || s.ByOutcome[spec.OK] != 18 {
			t.Errorf("after %d rows: %d more, want %d in all; %d done, %v, %v", cut, len(sink.rows), len(whole.rows), s.Done, s.ByOutcome, err)
		}
	}
}

// TestRetriesBudget: retries take no points of the budget, and time is kept for them.
func TestRetriesBudget(t *testing.T) {
	fail := func(m *spec.Measurement, try int) {
		if try == 1 && m.Config.Plan.Recompute == spec.RecomputeFull {
			killed(m)
		}
	}
	c := smallCampaign(Grid)
	c.Budget.Points = 8
	var sink memorySink
	s, err := Run(context.Background(), c, unluckyOptions(t, &sink, fail))
	if err != nil || s.Done != 8 || s.ByOutcome[spec.OK] != 8 || len(sink.rows) <= 8 || s.Stopped != "budget spent: 8 points" {
		t.Errorf("8 points: %d rows, %+v, %v", len(sink.rows), s, err)
	}
	c.Budget = Budget{DeviceHours: 120. / 3600}
	sink = memorySink{}
	s, err = Run(context.Background(), c, unluckyOptions(t, &sink, fail))
	if err != nil || s.ByOutcome[spec.Failed] != 0 || s.ByOutcome[spec.OK] < 5 || s.DeviceSec > 120 {
		t.Errorf("120 device-seconds: %d rows, %+v, %v", len(sink.rows), s, err)
	}
}

// TestRetriesExplained: Estimate lists the points to be measured once more, and a quarantined row is none of them.
func TestRetriesExplained(t *testing.T) {
	var sink memorySink
	o := unluckyOptions(t, &sink, func(m *spec.Measurement, try int) {
		if widest(m) && try == 1 {
			killed(m)
		}
	})
	c := smallCampaign(Grid)
	c.Budget.Points = 12
	o.Only = func(x spec.Config) bool { return x.Model.Name == "a" }
	mustRun(t, c, o)
	c.Budget.Points = 0
	o.Rows = slices.Clone(sink.rows[:12])
	want := 18 - 12
	for _, m := range o.Rows {
		if Retryable(m) != "" {
			want++
		}
	}
	if _, steps, err := Estimate(context.Background(), c, o); err != nil || want == 6 || len(steps) != want {
		t.Errorf("%d points to measure, want %d; %v", len(steps), want, err)
	}
	m := spec.Measurement{Outcome: spec.OK, Doubt: "throttled"}
	if Retryable(m) == "" || Retryable(m.Quarantine("moved")) != "" {
		t.Errorf("doubt %q, quarantined %q", Retryable(m), Retryable(m.Quarantine("moved")))
	}
}

// TestShortBudgetMeasuresEachModel: with as many points as models, or up to twice as many, each is measured.
func TestShortBudgetMeasuresEachModel(t *testing.T) {
	for _, family := range []string{"rubick", "hybrid"} {
		for _, order := range []Order{Adaptive, Random} {
			for _, budget := range []Budget{{Points: 5}, {Points: 9}, {DeviceHours: 45. / 3600}, {Wall: 45e9}} {
				var sink memorySink
				o, _ := options(t, &sink)
				o.Family = familyOf(t, family)
				c := smallCampaign(order)
				c.Models, c.Budget = nil, budget
				for _, name := range []string{"a", "b", "c", "d", "e"} {
					c.Models = append(c.Models, tinyModel(name, 4))
				}
				mustRun(t, c, o)
				models := map[string]bool{}
				for _, m := range sink.rows {
					models[m.Config.Model.Name] = true
				}
				if len(models) != 5 {
					t.Errorf("%s, %s, %+v: %d models in %d rows, want 5", family, order, budget, len(models), len(sink.rows))
				}
			}
		}
	}
}
