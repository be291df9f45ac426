package hybrid

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/drift"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestRepeatsOf: runs of a configuration at different times of one source are repeats; copies and rows of the same time
// are not.
func TestRepeatsOf(t *testing.T) {
	s := newDriftSite(1)
	a, b := s.config(), s.config()
	row := func(c spec.Config, day int, sec float64) spec.Measurement {
		m := s.row(t, c, day, drift.Compute, 1, 0)
		m.StepSec = []float64{sec}
		return m
	}
	undated := func(sec float64) spec.Measurement {
		m := row(b, 0, sec)
		m.At = time.Time{}
		return m
	}
	elsewhere := row(a, 9, 5)
	elsewhere.Source = "another"
	got := repeatsOf([]spec.Measurement{row(a, 1, 1), undated(2), row(a, 2, math.E), elsewhere, row(a, 2, 7), row(a, 1, 1), undated(2), undated(2 * math.E), undated(2 / math.E)})
	want := []gp.Repeats{{-1, 0, 1}, {-0.5, 0.5}}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Error(d)
	}
}

// TestIntervalsAfterRepeats: repeats of one of few configurations that scatter by 25 % widen the intervals of the
// others; repeats that agree do not. A stored fit has the same intervals.
func TestIntervalsAfterRepeats(t *testing.T) {
	s := newDriftSite(2)
	rows := s.rows(t, 5, 0, drift.Compute, 1, false)
	other := s.config()
	width := func(scatter float64) float64 {
		all := slices.Clone(rows)
		for i, sign := range []float64{1, -1, 1, -1, 0} {
			m := s.row(t, rows[3].Config, 30+i, drift.Compute, 1, 0)
			m.StepSec[0] *= math.Exp(sign * scatter)
			all = append(all, m)
		}
		h := condition(t, all)
		if d := h.Drifts(); len(d) > 0 {
			t.Fatalf("%v", d)
		}
		_, lo, hi := secondsOf(t, h, other)
		loaded, err := Shipped().Family().Load(recordOf(t, h))
		if err != nil {
			t.Fatal(err)
		}
		if _, l, u := secondsOf(t, loaded, other); l != lo || u != hi {
			t.Errorf("interval %g to %g before the fit is stored, %g to %g after", lo, hi, l, u)
		}
		return math.Log(hi/lo) / 2
	}
	calm, wild := width(0.02), width(0.25)
	if wild < 2*calm {
		t.Errorf("half width %.3f after repeats that scatter, %.3f after those that do not", wild, calm)
	}
	var fitted []spec.Measurement
	for i := range 4 {
		m := rows[3]
		m.At = m.At.Add(time.Duration(i) * time.Minute)
		m.StepSec = []float64{m.StepSec[0] * math.Exp(0.5*float64(i%2))}
		fitted = append(fitted, m)
	}
	_, card, err := Shipped().Family().Fit(t.Context(), perfmodel.Rows(slices.Concat(rows, fitted)))
	if err != nil || card.NFit != len(perfmodel.MergeRepeats(rows)) {
		t.Errorf("%v, %d rows fitted, want %d", err, card.NFit, len(perfmodel.MergeRepeats(rows)))
	}
}

// TestRowsOfKey: of a configuration that was measured before and after a change, the current row counts, which comes
// first.
func TestRowsOfKey(t *testing.T) {
	s := newDriftSite(3)
	rows := s.rows(t, 3, 0, drift.Compute, 1, false)
	c, err := analytic.NewCalibration(t.Context(), append(rows, rows[0]))
	if err != nil {
		t.Fatal(err)
	}
	got := rowsOfKey(c, rows[0].Config.Key())
	for i := range rows {
		if got[perfmodel.Canonical(rows[i].Config)] != i {
			t.Errorf("%v, want rows 0 to 2", got)
		}
	}
	if other := rowsOfKey(c, spec.Key{Model: "another"}); len(other) != 0 {
		t.Errorf("%v of another model", other)
	}
}
