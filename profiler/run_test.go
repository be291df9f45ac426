package profiler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// smallCampaign returns a campaign with two models and 2 x 16 points on two devices.
func smallCampaign(order Order) Campaign {
	return Campaign{
		Name: "small", Choose: order,
		Models: []spec.Model{tinyModel("a", 4), tinyModel("b", 8)},
		Space: Space{
			Shapes:     []spec.Shape{spec.NewShape(1), spec.NewShape(2)},
			MicroBatch: []int{1, 2, 4}, TP: []int{1, 2},
			Recompute: []spec.Recompute{spec.RecomputeNone, spec.RecomputeFull},
		},
	}
}

func mustRun(t testing.TB, c Campaign, o Options) State {
	t.Helper()
	state, err := Run(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func rubick(t testing.TB) perfmodel.Family {
	t.Helper()
	return familyOf(t, "rubick")
}

func familyOf(t testing.TB, name string) perfmodel.Family {
	t.Helper()
	f, err := family.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func options(t testing.TB, sink *memorySink) (Options, *lab) {
	c := newClock()
	l := &lab{clock: c}
	return Options{Machine: cpuMachine(2), Runner: l, Sink: sink, Family: rubick(t), Now: c.now, Seed: 7}, l
}

func TestRunMeasuresEverything(t *testing.T) {
	for _, order := range []Order{Adaptive, Random, Grid, ""} {
		var sink memorySink
		o, _ := options(t, &sink)
		events := 0
		o.Progress = func(e Event) { events++ }
		c := smallCampaign(order)
		s := mustRun(t, c, o)
		if s.Done != 36 || s.Points != 36 || len(sink.rows) != 36 || s.Stopped != "every point is measured" || events != 72 {
			t.Errorf("%s: %d of %d points, %d rows, %d events, stopped %q; want 36, 36, 36, 72, every point is measured",
				order, s.Done, s.Points, len(sink.rows), events, s.Stopped)
		}
		seen := map[Identity]bool{}
		for i, m := range sink.rows {
			seen[IdentityOf(m.Config)] = true
			if m.Source != "campaign/small" || m.Env[EnvRun] != "1" || m.Env[EnvCampaign] != "small" || pointNumber(m) != i+1 ||
				m.Env[EnvWhy] == "" || HeldSec(m) < 4 || m.Env["torch"] != "1.13" || m.Env["seen"] != "yes" || m.At.IsZero() {
				t.Errorf("row %d: %+v", i, m)
			}
			if want := "small#1/" + m.Env[EnvPoint]; m.Origin != want {
				t.Errorf("origin %q, want %q", m.Origin, want)
			}
			if err := m.Validate(); err != nil {
				t.Error(err)
			}
		}
		if len(seen) != 36 {
			t.Errorf("%s: %d configurations in 36 rows", order, len(seen))
		}
	}
}

func TestGridIsCanonicalAndRandomIsNot(t *testing.T) {
	inOrder := func(order Order, seed uint64) []spec.Config {
		var sink memorySink
		o, _ := options(t, &sink)
		o.Seed = seed
		mustRun(t, smallCampaign(order), o)
		out := make([]spec.Config, len(sink.rows))
		for i, m := range sink.rows {
			out[i] = m.Config
		}
		return out
	}
	grid := inOrder(Grid, 1)
	if !slices.IsSortedFunc(grid, perfmodel.CompareConfigs) {
		t.Error("the grid is not in canonical order")
	}
	one, again, two := inOrder(Random, 1), inOrder(Random, 1), inOrder(Random, 2)
	if slices.Equal(one, grid) || slices.Equal(one, two) || !slices.Equal(one, again) {
		t.Error("random order does not depend on the seed, and on that alone")
	}
	if a, b := inOrder(Adaptive, 1), inOrder(Adaptive, 1); !slices.Equal(a, b) || slices.Equal(a, grid) {
		t.Error("adaptive order is not its own, or not the same twice")
	}
}

// errCut simulates a kill.
var errCut = errors.New("cut")

// TestResumedRunIsTheUninterruptedOne: a run that is interrupted at any points, any number of times, has the
// same result.
func TestResumedRunIsTheUninterruptedOne(t *testing.T) {
	for _, order := range []Order{Adaptive, Random, Grid} {
		c := smallCampaign(order)
		c.Budget.Points = 20
		oom := func(c spec.Config) spec.Outcome {
			if c.Plan.MicroBatch >= 2 && c.Plan.TP == 1 && c.Model.Name == "b" {
				return spec.OOM
			}
			return spec.OK
		}
		var whole memorySink
		o, l := options(t, &whole)
		l.outcome = oom
		want := mustRun(t, c, o)
		rapid.Check(t, func(rt *rapid.T) {
			var sink memorySink
			o, l := options(t, &sink)
			l.outcome = oom
			for range rapid.IntRange(0, 2).Draw(rt, "kills") {
				cut := rapid.IntRange(0, 12).Draw(rt, "points until the kill")
				l.runs = 0
				l.before = func(n int) error {
					if n == cut {
						return errCut
					}
					return nil
				}
				o.Rows = slices.Clone(sink.rows)
				if _, err := Run(context.Background(), c, o); err != nil && !errors.Is(err, errCut) {
					rt.Fatal(err)
				}
			}
			l.before = nil
			o.Rows = rapid.Permutation(sink.rows).Draw(rt, "stored rows")
			got, err := Run(context.Background(), c, o)
			if err != nil {
				rt.Fatal(err)
			}
			if len(sink.rows) != len(whole.rows) {
				rt.Fatalf("%s: %d rows, uninterrupted %d", order, len(sink.rows), len(whole.rows))
			}
			for i := range sink.rows {
				if a, b := sink.rows[i], whole.rows[i]; a.Config != b.Config || a.Origin != b.Origin || a.Env[EnvWhy] != b.Env[EnvWhy] {
					rt.Fatalf("%s: row %d is %s (%s), uninterrupted %s (%s)", order, i, a.Config.Plan, a.Env[EnvWhy], b.Config.Plan, b.Env[EnvWhy])
				}
			}
			if got.Done != want.Done || got.Skipped != want.Skipped || got.Stopped != want.Stopped {
				rt.Fatalf("%+v, uninterrupted %+v", got, want)
			}
		})
	}
}

func TestBudgets(t *testing.T) {
	for name, tc := range map[string]struct {
		budget Budget
		check  func(s State) bool
	}{
		"points":       {Budget{Points: 5}, func(s State) bool { return s.Done == 5 && s.Stopped == "budget spent: 5 points" }},
		"device-hours": {Budget{DeviceHours: 60. / 3600}, func(s State) bool { return s.DeviceSec > 45 && s.DeviceSec <= 60 }},
		"wall":         {Budget{Wall: time.Minute}, func(s State) bool { return s.WallSec > 50 && s.WallSec <= 60 }},
	} {
		for _, order := range []Order{Adaptive, Grid} {
			var sink memorySink
			o, _ := options(t, &sink)
			c := smallCampaign(order)
			c.Budget = tc.budget
			s := mustRun(t, c, o)
			if !tc.check(s) || !strings.HasPrefix(s.Stopped, "budget spent: ") || s.Done == 36 {
				t.Errorf("%s, %s: %d points, %.4g device-seconds, %.4g s, stopped %q", name, order, s.Done, s.DeviceSec, s.WallSec, s.Stopped)
			}
			o.Rows = sink.rows
			if again, err := Run(context.Background(), c, o); err != nil || again.Done != s.Done {
				t.Errorf("%s, %s: run again, %d points, %v; want none more than %d", name, order, again.Done, err, s.Done)
			}
		}
	}
}

// TestOnly: a run measures only the points it is limited to, and plans for no others.
func TestOnly(t *testing.T) {
	c := Campaign{Name: "only", Models: []spec.Model{tinyModel("a", 4)}, Space: Space{MicroBatch: []int{1, 2, 4, 8}}, Choose: Grid}
	clock, sink := newClock(), &memorySink{}
	state := mustRun(t, c, Options{Machine: cpuMachine(1), Runner: &lab{clock: clock}, Sink: sink, Now: clock.now,
		Only: func(c spec.Config) bool { return c.Plan.MicroBatch == 2 || c.Plan.MicroBatch == 8 }})
	var got []int
	for _, m := range sink.rows {
		got = append(got, m.Config.Plan.MicroBatch)
	}
	if !slices.Equal(got, []int{2, 8}) || state.Points != 2 || state.Stopped != "every point is measured" {
		t.Errorf("micro-batches %v, %d points, stopped: %s", got, state.Points, state.Stopped)
	}
}
