package perfmodel_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// alone returns row(dp, sec) as one rank alone.
func alone(dp int, sec float64) spec.Measurement {
	m := row(dp, sec)
	m.Config.AloneStage = 1
	return m
}

// TestUsableAlone: a row of one rank is not usable as a whole step, whatever else it is.
func TestUsableAlone(t *testing.T) {
	doubted, failed := alone(1, 1), alone(2, 1)
	doubted.Doubt, failed.Outcome = "test", spec.Failed
	for _, c := range []struct {
		row             spec.Measurement
		usable, orAlone bool
	}{{row(1, 1), true, true}, {alone(1, 1), false, true}, {doubted, false, false}, {failed, false, false}, {alone(1, 1).Quarantine("x"), false, false}} {
		if got, or := perfmodel.Usable(c.row), perfmodel.UsableOrAlone(c.row); got != c.usable || or != c.orAlone {
			t.Errorf("%+v: usable %t, or alone %t; want %t, %t", c.row.Config.AloneStage, got, or, c.usable, c.orAlone)
		}
	}
	c := alone(1, 1).Config
	if err := perfmodel.NotAlone("f", &c); !errors.Is(err, perfmodel.ErrNotCovered) || !strings.Contains(err.Error(), "one rank of stage 1 of 1 alone") {
		t.Errorf("not alone: %v", err)
	}
	if c.AloneStage = 0; perfmodel.NotAlone("f", &c) != nil {
		t.Error("a whole plan is refused")
	}
}

// TestFitSkipsAlone: a family that knows only whole steps has the same fit and scores with rows of one rank, and says that
// it left them out; they count in no error, doubted ones neither.
func TestFitSkipsAlone(t *testing.T) {
	rows := []spec.Measurement{row(1, 1), row(2, 1), row(4, 1), row(8, 2), row(16, 1)}
	doubted := alone(2, 50)
	doubted.Doubt = "test"
	more := slices.Concat(rows, []spec.Measurement{alone(1, 100), alone(8, 100), doubted})
	for _, o := range []perfmodel.FitOptions{{}, {MaxRows: 2}} {
		want, card, err := perfmodel.FitKey(t.Context(), perSampleFamily, rows, o)
		if err != nil {
			t.Fatal(err)
		}
		got, with, err := perfmodel.FitKey(t.Context(), perSampleFamily, more, o)
		if err != nil {
			t.Fatal(err)
		}
		if got != want || with.MAPE != card.MAPE || with.MAPEAll != card.MAPEAll || with.NHeldOut != card.NHeldOut || with.NAll != card.NAll || with.NAlone != 0 {
			t.Errorf("%+v: %v with errors %+v, want %v with %+v", o, got, with, want, card)
		}
		if with.NLeftOut != card.NLeftOut+3 || !slices.ContainsFunc(with.Warnings, func(w string) bool { return strings.Contains(w, "2 rows of one rank alone not fitted") }) {
			t.Errorf("left out %d, warnings %q", with.NLeftOut, with.Warnings)
		}
	}
	_, _, err := perfmodel.FitKey(t.Context(), perSampleFamily, []spec.Measurement{alone(1, 1), alone(2, 1)}, perfmodel.FitOptions{})
	if !errors.Is(err, perfmodel.ErrTooFewPoints) || !strings.Contains(err.Error(), "2 of one rank alone, which this family does not fit") {
		t.Errorf("rows of one rank only: %v", err)
	}
}

// TestFitTakesAlone: a family that knows ranks alone has their rows in each of its fits, and is scored on whole steps only.
func TestFitTakesAlone(t *testing.T) {
	var fits []int // rows of one rank in each fit
	f := perSampleFamily
	f.Alone = true
	f.Fit = func(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
		n := 0
		for m := range data {
			if m.Config.Alone() {
				n++
			}
		}
		fits = append(fits, n)
		return fitPerSample(ctx, data)
	}
	rows := []spec.Measurement{row(1, 1), row(2, 1), row(4, 1), row(8, 1), alone(1, 3), alone(2, 3), alone(2, 3)}
	for _, o := range []perfmodel.FitOptions{{Folds: 2}, {MaxRows: 2}} {
		fits = nil
		_, card, err := perfmodel.FitKey(t.Context(), f, rows, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(fits) == 0 || slices.ContainsFunc(fits, func(n int) bool { return n != 2 }) {
			t.Errorf("%+v: fits with %v rows of one rank, want 2 in each", o, fits)
		}
		if card.NAlone != 2 || card.NHeldOut != 4 && o.MaxRows == 0 || card.NHeldOut != 2 && o.MaxRows > 0 {
			t.Errorf("%+v: %d of one rank, %d held out", o, card.NAlone, card.NHeldOut)
		}
	}
	fits = nil
	_, card, err := perfmodel.FitKey(t.Context(), f, append(rows[4:], alone(4, 3.3)), perfmodel.FitOptions{Unfitted: perSample(1)})
	if err != nil || card.NAlone != 3 || card.NHeldOut != 0 || card.MAPE != 0 || !slices.Equal(fits, []int{3, 2, 2, 2}) {
		t.Errorf("rows of one rank only: %+v, %v, in fits %v", card, err, fits)
	}
	if !card.BeatsUnfitted() || !(card.MAPEAlone > 0.02 && card.MAPEAlone < 0.2) || card.MAPEAloneUnfitted < 0.6 || !slices.ContainsFunc(card.Warnings, func(w string) bool { return strings.Contains(w, "all 3 rows are of one rank alone") }) {
		t.Errorf("rows of one rank only: error %g, without a fit %g, warnings %q", card.MAPEAlone, card.MAPEAloneUnfitted, card.Warnings)
	}
}

// TestPoolTakesAlone is TestFitTakesAlone for fits of several keys.
func TestPoolTakesAlone(t *testing.T) {
	var calls [][]spec.Measurement
	f := poolFamily(&calls)
	f.Alone = true
	rows := slices.Concat(rowsOf("a", "s", 4, 1), rowsOf("b", "s", 4, 1))
	lone := alone(64, 1)
	lone.Config.Model.Name, lone.Config.Framework = "a", "s"
	rows = append(rows, lone)
	fits, err := perfmodel.FitPool(t.Context(), f, rows, perfmodel.PoolOptions{})
	if err != nil || len(fits) != 2 || fits[0].Err != nil || fits[0].Card.NAlone != 1 || fits[0].Card.NFit != 5 || fits[0].Card.NHeldOut != 4 || fits[1].Card.NAlone != 0 {
		t.Fatalf("%+v, %v", fits, err)
	}
	for _, of := range calls {
		if !slices.ContainsFunc(of, func(m spec.Measurement) bool { return m.Config.Alone() }) {
			t.Errorf("a fit of %d rows is without that of one rank", len(of))
		}
	}
}
