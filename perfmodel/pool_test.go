package perfmodel_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// pooled is perSample over rows of any keys. It refuses to predict rows that it was fitted to.
type pooled struct {
	perSample
	rows []spec.Measurement
}

func (p *pooled) Of(key spec.Key) (perfmodel.Fitted, perfmodel.Card) {
	return p, perfmodel.Card{Warnings: []string{key.Model}}
}

func (p *pooled) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	for _, m := range p.rows {
		if perfmodel.Canonical(m.Config) == perfmodel.Canonical(c) {
			return spec.Prediction{}, fmt.Errorf("pooled: %s is scored by a fit to it", c.Plan)
		}
	}
	return p.perSample.Predict(ctx, c)
}

// poolFamily fits perSample to rows of any keys; calls are the rows of each fit. A step time of 13 s has no fit.
func poolFamily(calls *[][]spec.Measurement) perfmodel.Family {
	f := perSampleFamily
	f.Condition = func(ctx context.Context, rows []spec.Measurement) (perfmodel.Fitted, error) {
		if slices.ContainsFunc(rows, func(m spec.Measurement) bool { return m.StepSec[0] == 13 }) {
			return nil, perfmodel.ErrNotFinite
		}
		*calls = append(*calls, rows)
		fitted, _, err := fitPerSample(ctx, perfmodel.Rows(perfmodel.MergeRepeats(rows)))
		if err != nil {
			return nil, err
		}
		return &pooled{perSample: fitted.(perSample), rows: rows}, nil
	}
	return f
}

// rowsOf returns rows of a model on a training stack, of 1, 2, 4 ... devices.
func rowsOf(model, stack string, n int, sec float64) []spec.Measurement {
	var out []spec.Measurement
	for i := range n {
		m := row(1<<i, sec)
		m.Config.Model.Name, m.Config.Framework = model, stack
		out = append(out, m)
	}
	return out
}

// TestFitPoolTakesFittedRowsOfOthers: the chosen rows of all keys of a stack take part in the fit of each, a scored row
// never, and neither do rows of other stacks. The family fails if it predicts a row that it was fitted to.
func TestFitPoolTakesFittedRowsOfOthers(t *testing.T) {
	a, b, c := rowsOf("a", "Megatron Core@0.11", 8, 1), rowsOf("b", "Megatron Core", 6, 2), rowsOf("c", "DeepSpeed", 4, 5)
	rows := slices.Concat(a, b, c, a) // each row of a has a repeat
	for _, limit := range []int{0, 3} {
		var calls [][]spec.Measurement
		fits, err := perfmodel.FitPool(t.Context(), poolFamily(&calls), rows, perfmodel.PoolOptions{FitOptions: perfmodel.FitOptions{MaxRows: limit}})
		if err != nil || len(fits) != 3 {
			t.Fatal(fits, err)
		}
		want := map[int][3][3]int{0: {{8, 6, 8}, {6, 8, 6}, {4, 0, 4}}, 3: {{3, 3, 5}, {3, 3, 3}, {2, 0, 2}}}[limit] // fitted, pooled, held out
		for i, f := range fits {
			if f.Err != nil || f.Key.Model != string(rune('a'+i)) {
				t.Fatalf("%d rows: %+v", limit, f)
			}
			if got := [3]int{f.Card.NFit, f.Card.NPooled, f.Card.NHeldOut}; got != want[i] {
				t.Errorf("at most %d rows of %s: %d fitted, pooled and held out, want %d", limit, f.Key, got, want[i])
			}
			if f.Card.Family != "per-sample" || f.Card.Key != f.Key || !slices.Equal(f.Card.Warnings, []string{f.Key.Model}) {
				t.Errorf("card %+v", f.Card)
			}
		}
		if fits[0].Card.DataHash != fits[1].Card.DataHash || fits[0].Card.DataHash == fits[2].Card.DataHash || fits[2].Card.DataHash == "" {
			t.Error("keys share a hash of the rows if they share the fit")
		}
		// One fit per stack, and one per fold of a cross-validation.
		if per := map[int]int{0: 1 + 5, 3: 1}[limit]; len(calls) != 2*per {
			t.Errorf("%d fits of two stacks, want %d of each", len(calls), per)
		}
		for _, of := range calls {
			for _, m := range of {
				if (m.Config.Framework == "DeepSpeed") != (of[0].Config.Framework == "DeepSpeed") {
					t.Fatal("one fit has rows of two stacks")
				}
			}
		}
	}
}

// TestFitPoolPassesRepeats: a family sees each repeat of a fitted configuration, with its own time of measurement.
func TestFitPoolPassesRepeats(t *testing.T) {
	var calls [][]spec.Measurement
	a := rowsOf("a", "DeepSpeed", 4, 1)
	if _, err := perfmodel.FitPool(t.Context(), poolFamily(&calls), slices.Concat(a, a), perfmodel.PoolOptions{FitOptions: perfmodel.FitOptions{MaxRows: 2}}); err != nil {
		t.Fatal(err)
	}
	if len(calls) != 1 || len(calls[0]) != 4 {
		t.Errorf("%d fits, want one to two repeats of two configurations", len(calls))
	}
}

// TestFitPoolDoesNotDependOnOrder: not on that of rows, and neither on which keys are fitted.
func TestFitPoolDoesNotDependOnOrder(t *testing.T) {
	rows := slices.Concat(rowsOf("a", "", 8, 1), rowsOf("b", "", 6, 2), rowsOf("a", "DeepSpeed", 7, 3), rowsOf("a", "", 8, 1.5))
	for _, limit := range []int{0, 3} {
		o := perfmodel.PoolOptions{FitOptions: perfmodel.FitOptions{MaxRows: limit}}
		var calls [][]spec.Measurement
		want, err := perfmodel.FitPool(t.Context(), poolFamily(&calls), rows, o)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := slices.Clone(rows)
		rand.New(rand.NewPCG(3, 4)).Shuffle(len(rows), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		o.Keys = func(k spec.Key) bool { return k.Model == "b" }
		got, err := perfmodel.FitPool(t.Context(), poolFamily(&calls), shuffled, o)
		if err != nil || len(got) != 1 || fmt.Sprint(got[0].Card) != fmt.Sprint(want[1].Card) || got[0].Card.NPooled == 0 {
			t.Errorf("%+v, %v\nwant the card of the same rows in another order, and with key a fitted: %+v", got, err, want[1].Card)
		}
	}
}

// TestFitPoolAlone: each key has its own fit on request, for a family without Condition, and if there is no common one.
func TestFitPoolAlone(t *testing.T) {
	rows := slices.Concat(rowsOf("a", "", 4, 1), rowsOf("b", "", 4, 2), rowsOf("c", "DeepSpeed", 1, 1))
	broken := slices.Clone(rows)
	broken[0].StepSec = []float64{13}
	var calls [][]spec.Measurement
	family := poolFamily(&calls)
	for _, c := range []struct {
		what  string
		f     perfmodel.Family
		alone bool
		rows  []spec.Measurement
	}{{"on request", family, true, rows}, {"without Condition", perSampleFamily, false, rows}, {"without a common fit", family, false, broken}} {
		done := 0
		fits, err := perfmodel.FitPool(t.Context(), c.f, c.rows, perfmodel.PoolOptions{Alone: c.alone, Done: func(n, of int) {
			if done++; n != done || of != 3 {
				t.Errorf("%s: %d of %d keys done, want %d of 3", c.what, n, of, done)
			}
		}})
		if err != nil || done != 3 || len(calls) > 0 && c.what != "without a common fit" {
			t.Fatal(c.what, done, calls, err)
		}
		for _, f := range fits[:2] {
			_, want, err := perfmodel.FitKey(t.Context(), c.f, perfmodel.GroupByKey(c.rows)[f.Key], perfmodel.FitOptions{})
			if err != nil || f.Err != nil || fmt.Sprint(f.Card) != fmt.Sprint(want) || f.Card.NFit != 4 || f.Card.NPooled != 0 {
				t.Errorf("%s: %+v, %v, want %+v, %v", c.what, f.Card, f.Err, want, err)
			}
		}
		if !errors.Is(fits[2].Err, perfmodel.ErrTooFewPoints) {
			t.Errorf("%s: one row: %v", c.what, fits[2].Err)
		}
	}
	if _, err := perfmodel.FitPool(t.Context(), family, rows, perfmodel.PoolOptions{FitOptions: perfmodel.FitOptions{MaxRows: -1}}); err == nil {
		t.Error("-1 rows are accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := perfmodel.FitPool(ctx, family, rows, perfmodel.PoolOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
