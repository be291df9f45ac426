package perfmodel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// perSample is a family with one parameter: seconds per sample, the mean over its rows. It does not cover plans
// with pipelines.
type perSample float64

func (p perSample) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	if c.Plan.PP > 1 {
		return spec.Prediction{}, fmt.Errorf("perSample: pipeline: %w", perfmodel.ErrNotCovered)
	}
	r := 1 / float64(p)
	return spec.Prediction{Throughput: r, Lo: r * 0.9, Hi: r * 1.1}, nil
}

func (p perSample) MarshalBinary() ([]byte, error) { return fmt.Appendf(nil, "%g", float64(p)), nil }

func fitPerSample(_ context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	sum, n := 0.0, 0
	for m, err := range data {
		if err != nil {
			return nil, perfmodel.Card{}, err
		}
		sum += m.MedianStepSec() / float64(m.Config.Plan.GlobalBatch())
		n++
	}
	if n < 2 {
		return nil, perfmodel.Card{}, fmt.Errorf("perSample: %d rows: %w", n, perfmodel.ErrTooFewPoints)
	}
	return perSample(sum / float64(n)), perfmodel.Card{NFit: n}, nil
}

var perSampleFamily = perfmodel.Family{Name: "per-sample", Fit: fitPerSample}

// row returns a measurement of dp devices with one sample each, at sec seconds per sample.
func row(dp int, sec float64) spec.Measurement {
	return spec.Measurement{
		Config: spec.Config{Model: spec.Model{Name: "m"}, Accelerator: spec.Accelerator{Name: "a"},
			Plan: spec.Plan{DP: dp}.Normal(), Shape: spec.Packed(dp, 8)},
		Outcome: spec.OK, StepSec: []float64{sec * float64(dp)}, Source: "test", Origin: fmt.Sprint(dp),
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestFitKeyHoldsOutWhatItDidNotFit(t *testing.T) {
	rows := []spec.Measurement{row(1, 1), row(2, 1), row(4, 1), row(8, 2), row(16, 1)}
	f := perSampleFamily
	f.Choose = func(_ []spec.Config, n int) []int { return []int{0, 1}[:n] }
	doubted, failed := row(32, 4), row(64, 1)
	doubted.Doubt = "test"
	failed.Outcome, failed.StepSec = spec.OOM, nil
	_, c, err := perfmodel.FitKey(t.Context(), f, append(rows, doubted, failed, row(128, 9).Quarantine("test")), perfmodel.FitOptions{MaxRows: 8})
	if err != nil {
		t.Fatal(err)
	}
	// predicted 1 s per sample: 0, 0.5 and 0 off; the doubted row 0.75. The quarantined one is not scored.
	if c.NFit != 2 || c.NHeldOut != 3 || c.NLeftOut != 3 {
		t.Errorf("fitted %d, held out %d, left out %d; want 2 (half of 5), 3, 3", c.NFit, c.NHeldOut, c.NLeftOut)
	}
	if !near(c.MAPE, 0.5/3) || !near(c.P95APE, 0.5) || !near(c.MAPEAll, 1.25/4) || !near(c.Coverage, 2.0/3) {
		t.Errorf("MAPE %g, P95 %g, all %g, coverage %g; want %g, 0.5, %g, %g", c.MAPE, c.P95APE, c.MAPEAll, c.Coverage, 0.5/3, 1.25/4, 2.0/3)
	}
	if c.Family != "per-sample" || c.Key != (spec.Key{Model: "m", Accelerator: "a"}) {
		t.Errorf("card of %s, %s", c.Family, c.Key)
	}
}

// TestFitKeyComparesWithTheUnfitted: the model without a fit is scored on the held-out rows only, and the card
// reports which one was better.
func TestFitKeyComparesWithTheUnfitted(t *testing.T) {
	rows := []spec.Measurement{row(1, 1), row(2, 1), row(4, 1), row(8, 2), row(16, 1)}
	f := perSampleFamily
	f.Choose = func(_ []spec.Config, n int) []int { return []int{0, 1}[:n] }
	for _, tc := range []struct {
		rival perfmodel.Predictor
		mape  float64
	}{
		{nil, 0},
		{perSample(2), 2.0 / 3},    // 1, 0 and 1 off
		{perSample(1.1), 0.65 / 3}, // 0.1, 0.45 and 0.1 off
	} {
		_, c, err := perfmodel.FitKey(t.Context(), f, rows, perfmodel.FitOptions{MaxRows: 8, Unfitted: tc.rival})
		if err != nil {
			t.Fatal(err)
		}
		if !near(c.MAPE, 0.5/3) || math.Abs(c.MAPEUnfitted-tc.mape) > 1e-12 {
			t.Errorf("rival %v: fitted %g off, unfitted %g, want %g and %g", tc.rival, c.MAPE, c.MAPEUnfitted, 0.5/3, tc.mape)
		}
	}
	for _, tc := range []struct {
		held           int
		mape, unfitted float64
		want           bool
	}{{0, 0, 0, false}, {5, 0.2, 0, true}, {5, 0.2, 0.3, true}, {5, 0.3, 0.2, false}, {5, 0.2, 0.2, false}} {
		c := perfmodel.Card{NHeldOut: tc.held, MAPE: tc.mape, MAPEUnfitted: tc.unfitted}
		if got := c.BeatsUnfitted(); got != tc.want {
			t.Errorf("%d rows, %g against %g: %v", tc.held, tc.mape, tc.unfitted, got)
		}
	}
}

func TestFitKeyCountsRepeatsOnce(t *testing.T) {
	rows := []spec.Measurement{row(1, 1), row(1, 3), row(1, 2), row(2, 2)}
	f := perSampleFamily
	f.Fit = func(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
		for m := range data {
			return perSample(m.MedianStepSec()), perfmodel.Card{NFit: 1}, nil
		}
		return nil, perfmodel.Card{}, perfmodel.ErrTooFewPoints
	}
	fitted, c, err := perfmodel.FitKey(t.Context(), f, rows, perfmodel.FitOptions{MaxRows: 8})
	if err != nil {
		t.Fatal(err)
	}
	if c.NFit != 1 || c.NHeldOut != 1 || fitted != perSample(2) {
		t.Errorf("fitted %d rows to %v, held out %d; want 1, the median 2, 1", c.NFit, fitted, c.NHeldOut)
	}
}

func TestFitKeyCrossValidates(t *testing.T) {
	// Two folds of two rows: each fold's mean predicts the other's rows.
	rows := []spec.Measurement{row(1, 1), row(2, 1), row(4, 1), row(8, 1)}
	fitted, c, err := perfmodel.FitKey(t.Context(), perSampleFamily, rows, perfmodel.FitOptions{Folds: 2})
	if err != nil {
		t.Fatal(err)
	}
	if c.NFit != 4 || c.NHeldOut != 4 || c.MAPE != 0 || c.Coverage != 1 || fitted != perSample(1) {
		t.Errorf("card %+v of %v", c, fitted)
	}
	rows[3] = row(8, 3)
	if _, c, _ = perfmodel.FitKey(t.Context(), perSampleFamily, rows, perfmodel.FitOptions{Folds: 2}); c.MAPE == 0 {
		t.Error("an odd row leaves the cross-validated error at 0: it was predicted by a fit that saw it")
	}
}

func TestFitKeyDoesNotDependOnOrder(t *testing.T) {
	var rows []spec.Measurement
	rng := rand.New(rand.NewPCG(1, 1))
	for dp := 1; dp <= 23; dp++ {
		rows = append(rows, row(dp, 1+rng.Float64()))
	}
	for _, o := range []perfmodel.FitOptions{{}, {MaxRows: 4}, {Folds: 3, Seed: 9}} {
		_, want, err := perfmodel.FitKey(t.Context(), perSampleFamily, rows, o)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := slices.Clone(rows)
		rng.Shuffle(len(rows), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if _, got, _ := perfmodel.FitKey(t.Context(), perSampleFamily, shuffled, o); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v: card %v, in another order %v", o, want, got)
		}
	}
	_, a, _ := perfmodel.FitKey(t.Context(), perSampleFamily, rows, perfmodel.FitOptions{Seed: 1})
	_, b, _ := perfmodel.FitKey(t.Context(), perSampleFamily, rows, perfmodel.FitOptions{Seed: 2})
	if a.MAPE == b.MAPE {
		t.Error("another seed deals the same folds")
	}
}

func TestFitKeySaysWhatIsNotScored(t *testing.T) {
	pipeline := row(8, 1)
	pipeline.Config.Plan.DP, pipeline.Config.Plan.PP = 4, 2
	_, c, err := perfmodel.FitKey(t.Context(), perSampleFamily, []spec.Measurement{row(1, 1), row(2, 1), row(4, 1), pipeline}, perfmodel.FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.NHeldOut != 3 || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "1 configurations not covered") {
		t.Errorf("scored %d, warnings %q", c.NHeldOut, c.Warnings)
	}
	_, c, err = perfmodel.FitKey(t.Context(), perSampleFamily, []spec.Measurement{row(1, 1), row(2, 1)}, perfmodel.FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.NHeldOut != 0 || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "2 of 2 configurations not cross-validated") {
		t.Errorf("scored %d, warnings %q", c.NHeldOut, c.Warnings)
	}
	three := perfmodel.Family{Name: "three", Fit: func(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
		f, c, err := fitPerSample(ctx, data)
		if err == nil && c.NFit < 3 {
			err = perfmodel.ErrTooFewPoints
		}
		return f, c, err
	}}
	anchored := perfmodel.Family{Name: "anchored", Fit: func(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
		for m := range data {
			if m.Config.Plan.DP == 1 {
				return fitPerSample(ctx, data)
			}
		}
		return nil, perfmodel.Card{}, perfmodel.ErrTooFewPoints
	}}
	_, c, err = perfmodel.FitKey(t.Context(), anchored, []spec.Measurement{row(1, 1), row(2, 1), row(4, 1)}, perfmodel.FitOptions{Folds: 3})
	if err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "1 of 3 configurations not cross-validated") {
		t.Errorf("warnings %q, %v, want 1 of 3", c.Warnings, err)
	}
	for n, want := range map[int]string{4: "4 of 4 configurations not cross-validated", 5: "3 of 5 configurations not cross-validated", 6: ""} {
		var rows []spec.Measurement
		for i := range n {
			rows = append(rows, row(1<<i, 1))
		}
		_, c, err := perfmodel.FitKey(t.Context(), three, rows, perfmodel.FitOptions{Folds: 2})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Warnings, "; "); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%d rows in 2 folds: warnings %q, want %q", n, got, want)
		}
	}
}

func TestFitKeyScoresFamiliesThatNeedNoFit(t *testing.T) {
	f := perfmodel.Family{Name: "ready", Unfitted: perSample(1)}
	fitted, c, err := perfmodel.FitKey(t.Context(), f, []spec.Measurement{row(1, 1), row(2, 2)}, perfmodel.FitOptions{MaxRows: 8})
	if err != nil || fitted != perSample(1) || c.NFit != 0 || c.NHeldOut != 2 || !near(c.MAPE, 0.25) {
		t.Errorf("%v, %+v, %v", fitted, c, err)
	}
}

func TestFitKeyErrors(t *testing.T) {
	other := row(1, 1)
	other.Config.Model.Name = "n"
	for _, c := range []struct {
		name string
		f    perfmodel.Family
		rows []spec.Measurement
		o    perfmodel.FitOptions
		few  bool
		want string
	}{
		{"no rows", perSampleFamily, nil, perfmodel.FitOptions{}, true, "none of 0 rows is usable"},
		{"all in doubt", perSampleFamily, []spec.Measurement{doubtful(1, "busy"), doubtful(2, "throttled"), doubtful(3, "throttled")}, perfmodel.FitOptions{}, true,
			"none of 3 rows is usable (3 in doubt: throttled; measure again with nothing else running"},
		{"one to fit and score", perSampleFamily, []spec.Measurement{row(1, 1)}, perfmodel.FitOptions{MaxRows: 8}, true, "1 usable configuration"},
		{"two keys", perSampleFamily, []spec.Measurement{row(1, 1), other}, perfmodel.FitOptions{}, false, "rows of m on a and of n on a"},
		{"negative rows", perSampleFamily, nil, perfmodel.FitOptions{MaxRows: -1}, false, "fit on -1 rows"},
		{"one fold", perSampleFamily, nil, perfmodel.FitOptions{Folds: 1}, false, "1 folds"},
		{"useless family", perfmodel.Family{Name: "none"}, []spec.Measurement{row(1, 1)}, perfmodel.FitOptions{}, false, `"none" can neither`},
	} {
		_, _, err := perfmodel.FitKey(t.Context(), c.f, c.rows, c.o)
		if err == nil || errors.Is(err, perfmodel.ErrTooFewPoints) != c.few || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := perfmodel.FitKey(ctx, perSampleFamily, []spec.Measurement{row(1, 1), row(2, 1), row(4, 1)}, perfmodel.FitOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestFitKeyDoesNotScoreWhatItFitted: one configuration written in two ways is one row. Otherwise one of the
// two would be fitted and the other held out.
func TestFitKeyDoesNotScoreWhatItFitted(t *testing.T) {
	explicit, spelled := row(1, 1), row(1, 1)
	explicit.Config.Plan = spec.Plan{DP: 1}
	spelled.Config.Model.SeqLen, spelled.Config.SeqLen = 512, 512
	asModel := spelled
	asModel.Config.SeqLen = 0
	rows := []spec.Measurement{row(1, 1), explicit, spelled, asModel, row(2, 1), row(4, 1), row(8, 1)}
	_, c, err := perfmodel.FitKey(t.Context(), perSampleFamily, rows, perfmodel.FitOptions{MaxRows: 8})
	if err != nil {
		t.Fatal(err)
	}
	if c.NFit+c.NHeldOut != 5 { // with and without a sequence length, and three other counts
		t.Errorf("%d configurations, want 5: %+v", c.NFit+c.NHeldOut, c)
	}
}

// TestCardsAreJSON: any card can be written as JSON, with empty lists and maps instead of null.
func TestCardsAreJSON(t *testing.T) {
	for name, rows := range map[string][]spec.Measurement{
		"nothing held out": {row(1, 1), row(2, 1)},
		"usual":            {row(1, 1), row(2, 1), row(4, 1), row(8, 1)},
	} {
		_, c, err := perfmodel.FitKey(t.Context(), perSampleFamily, rows, perfmodel.FitOptions{Folds: 2})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(c)
		if err != nil || strings.Contains(string(b), "null") {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
	_, _, err := perfmodel.FitKey(t.Context(), perSampleFamily, []spec.Measurement{row(1, 1), row(2, 1), row(4, 1), row(8, 5e-324)}, perfmodel.FitOptions{Folds: 2})
	if err == nil || !strings.Contains(err.Error(), "no meaningful error") {
		t.Errorf("a step of 4e-323 s: %v", err)
	}
}

// doubtful returns a measurement with a doubt.
func doubtful(mb int, why string) spec.Measurement {
	m := row(mb, 1)
	m.Doubt = why
	return m
}
