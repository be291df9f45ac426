package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/bench/accuracy"
	"github.com/pacer-ml/pacer/cmd/internal/importer"
	"github.com/pacer-ml/pacer/datasets/measured"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
	"github.com/pacer-ml/pacer/profiler"
)

// TestMeasuredSets reads every embedded set and compares its rows with what its
// provenance says of them.
func TestMeasuredSets(t *testing.T) {
	sets := measured.Sets()
	if len(sets) == 0 {
		t.Fatal("no set is embedded")
	}
	for _, s := range sets {
		rows, err := importer.Measured(s)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != s.Rows {
			t.Errorf("%s: %d rows, its provenance says %d", s.Name, len(rows), s.Rows)
		}
		for what, text := range map[string]string{"doc": s.Doc, "machine": s.Machine, "software": s.Software, "command": s.Command, "commit": s.Commit} {
			if text == "" {
				t.Errorf("%s: no %s", s.Name, what)
			}
		}
		day, err := time.Parse(time.DateOnly, s.Date)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		campaigns := s.Campaigns
		if len(campaigns) == 0 {
			campaigns = []string{s.Name}
		}
		for _, m := range rows {
			campaign := m.Env[profiler.EnvCampaign]
			if m.Source != "campaign/"+campaign || m.Config.Framework != spec.FrameworkWorker || !slices.Contains(campaigns, campaign) {
				t.Fatalf("%s: a row of %s, framework %s", s.Name, m.Source, m.Config.Framework)
			}
			if m.At.Before(day) || m.At.After(day.AddDate(0, 0, 7)) {
				t.Fatalf("%s: a row of %v", s.Name, m.At)
			}
			least := 3
			if m.Env["steps_stopped"] == "max_time" { // of slow steps
				least = 2
			}
			if m.Outcome == spec.OK && len(m.StepSec) < least {
				t.Errorf("%s: %s %s has %d step times", s.Name, m.Config.Key(), m.Config.Plan, len(m.StepSec))
			}
		}
	}
}

// TestMeasuredPredicted keeps what the demo shows: each model fitted on few of
// its rows predicts the others.
func TestMeasuredPredicted(t *testing.T) {
	s, err := measured.Lookup(demoSet)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := importer.Measured(s)
	if err != nil {
		t.Fatal(err)
	}
	fam, err := family.Lookup(demoFamily)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := fam.Condition(t.Context(), rows)
	if d := pool.(perfmodel.Drifter).Drifts(); err != nil || len(d) > 0 || rows[0].At.IsZero() {
		t.Errorf("rows of one machine, measured on %s: %v, %v, want no drift", rows[0].At, d, err)
	}
	const most = 0.2 // reached: 0.11 to 0.16
	for key, of := range perfmodel.GroupByKey(rows) {
		_, card, err := perfmodel.FitKey(t.Context(), fam, of, perfmodel.FitOptions{MaxRows: demoFit})
		if err != nil {
			t.Fatal(err)
		}
		fit, held, err := perfmodel.Split(fam, of, demoFit)
		if err != nil {
			t.Fatal(err)
		}
		if len(fit) != card.NFit || len(held) != card.NHeldOut || len(fit)+len(held) != len(of) {
			t.Errorf("%s: %d and %d rows of %d, the card says %d and %d", key, len(fit), len(held), len(of), card.NFit, card.NHeldOut)
		}
		if !(card.MAPE < most) {
			t.Errorf("%s: mean error %.3f, want below %g", key, card.MAPE, most)
		}
	}
}

// TestMeasuredMemory predicts the memory of the rows of an H100, which the shipped calibration was not fitted to.
func TestMeasuredMemory(t *testing.T) {
	rows, err := accuracy.OwnRows()
	if err != nil {
		t.Fatal(err)
	}
	n, mean, most := 0, 0.0, 0.0
	for _, m := range rows {
		if m.Outcome != spec.OK {
			continue
		}
		e, err := memory.Shipped().For(m.Config)
		if err != nil {
			t.Fatal(err)
		}
		off := math.Abs(e.Measured(m.Config.Plan, stack.Allocated)/m.PeakBytes - 1)
		n, mean, most = n+1, mean+off, max(most, off)
	}
	if mean /= float64(n); n != 44 || mean > 0.065 || most > 0.2 { // reached: 0.057, 0.19
		t.Errorf("memory of %d rows: mean error %.3f, largest %.3f", n, mean, most)
	}
}
