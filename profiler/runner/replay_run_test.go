package runner

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// table returns 16 rows for each of two models, with step times of the analytic model; two of them ran out of
// memory, one is in doubt.
func table(t testing.TB) []spec.Measurement {
	t.Helper()
	var rows []spec.Measurement
	for _, model := range []string{"m", "n"} {
		for _, dp := range []int{1, 2, 4, 8} {
			for _, mb := range []int{1, 2, 4, 8} {
				c := config(mb)
				c.Model.Name, c.Plan.DP, c.Shape = model, dp, spec.NewShape(dp)
				p, err := (&analytic.Model{}).Predict(context.Background(), c)
				if err != nil {
					t.Fatal(err)
				}
				sec, _, _ := p.StepSec(c.Plan.GlobalBatch())
				m := spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{sec}, Source: "t", Env: map[string]string{}}
				if mb == 8 && dp == 1 {
					m.Outcome, m.StepSec, m.Reason = spec.OOM, nil, "too large"
				}
				if mb == 8 && dp == 8 && model == "n" {
					m.Doubt = "erratic"
				}
				rows = append(rows, m)
			}
		}
	}
	return rows
}

// killed is the sink of a process that is killed after some acknowledgements: the context of the run ends then.
type killed struct {
	rows  []spec.Measurement
	after int
	kill  context.CancelFunc
}

func (k *killed) Put(_ context.Context, ms ...spec.Measurement) error {
	if k.rows = append(k.rows, ms...); len(k.rows) == k.after {
		k.kill()
	}
	return nil
}

// TestKilledReplays: a replayed campaign that is killed repeatedly measures the same as an uninterrupted one.
func TestKilledReplays(t *testing.T) {
	rows := table(t)
	rubick, err := family.Lookup("rubick")
	if err != nil {
		t.Fatal(err)
	}
	clock := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		c := profiler.Campaign{
			Name: "killed", Space: profiler.Space{Measured: true}, Runner: profiler.RunnerSpec{Name: profiler.RunnerReplay, Source: "t"},
			Choose: rapid.SampledFrom([]profiler.Order{profiler.Adaptive, profiler.Random, profiler.Grid}).Draw(t, "order"),
			Budget: profiler.Budget{Points: rapid.IntRange(1, 40).Draw(t, "budget")},
		}
		seed := rapid.Uint64().Draw(t, "seed")
		o := profiler.Options{Runner: NewReplay(rows, SimulatedTiming{Noise: 0.03, Seed: seed}), Family: rubick, Seed: seed,
			Now: func() time.Time { return clock }}
		run := func(k *killed) profiler.State {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			k.kill = cancel
			o.Sink, o.Rows = k, slices.Clone(k.rows)
			s, err := profiler.Run(ctx, c, o)
			if err != nil && s.Stopped != profiler.Interrupted {
				t.Fatal(err)
			}
			return s
		}
		whole := &killed{}
		want := run(whole)
		cut := &killed{}
		var got profiler.State
		for range 100 {
			cut.after = len(cut.rows) + rapid.IntRange(1, 15).Draw(t, "points until the kill")
			if got = run(cut); got.Stopped != profiler.Interrupted {
				break
			}
		}
		if got.Stopped != want.Stopped || got.Done != want.Done || len(cut.rows) != len(whole.rows) {
			t.Fatalf("killed: %d points, %q; in one go %d, %q", got.Done, got.Stopped, want.Done, want.Stopped)
		}
		for i, m := range cut.rows {
			if a, b := fmt.Sprint(m), fmt.Sprint(whole.rows[i]); a != b {
				t.Fatalf("row %d is\n%s\nin one go\n%s", i, a, b)
			}
		}
	})
}
