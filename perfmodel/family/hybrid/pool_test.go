package hybrid

import (
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// twoModels returns rows of two models on one site, and of a job without a shape.
func twoModels(t testing.TB) (large, small, opaque []spec.Measurement) {
	large = hybridRows(t, 40, 1.3, 0.03)
	small = slices.Clone(large)
	for i := range small {
		c := &small[i].Config
		c.Model.Name, c.Model.Layers = "small", 16
		before, _, _ := secondsOf(t, Shipped(), large[i].Config)
		after, _, _ := secondsOf(t, Shipped(), *c)
		small[i].StepSec = []float64{large[i].StepSec[0] * after / before}
	}
	for i, nodes := range perftest.DataParallelShapes {
		c := perftest.DataParallel(8, 1, nodes...)
		c.Framework = large[0].Config.Framework
		opaque = append(opaque, spec.Measurement{Config: c, Outcome: spec.OK, Source: "made", StepSec: []float64{1 + 0.1*float64(i)}})
	}
	return large, small, opaque
}

// TestModelOf: the part of a fit of several keys that is stored for one key predicts it as the whole does, before and
// after it is stored, and has the other keys' rows but not their mixtures and jobs.
func TestModelOf(t *testing.T) {
	large, small, opaque := twoModels(t)
	whole := condition(t, slices.Concat(large[:30], small[:20], opaque))
	if len(whole.mixed) != 2 || len(whole.shapeless) != 1 {
		t.Fatalf("%d mixtures and %d fits without a shape, want 2 and 1", len(whole.mixed), len(whole.shapeless))
	}
	for _, rows := range [][]spec.Measurement{large, small, opaque} {
		key := rows[0].Config.Key()
		part, card := whole.Of(key)
		if card.Key != key || card.Family != "hybrid" || len(card.Params) < 3 {
			t.Errorf("card %+v", card)
		}
		if of := part.(*Model); len(of.mixed)+len(of.shapeless) != 1 || len(of.base.residual.At) != 50 {
			t.Errorf("%s: %d mixtures, %d fits without a shape and %d rows, want 1 of both and 50", key, len(of.mixed), len(of.shapeless), len(of.base.residual.At))
		}
		b, err := part.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := Shipped().Family().Load(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range rows {
			want, err := whole.Predict(t.Context(), m.Config)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []perfmodel.Fitted{part, loaded} {
				got, err := f.Predict(t.Context(), m.Config)
				if err != nil || got.Throughput != want.Throughput || got.Lo != want.Lo || got.Hi != want.Hi || got.MemoryBytes != want.MemoryBytes {
					t.Fatalf("%s of %s: %+v, %v, want %+v", m.Config.Plan, key, got, err, want)
				}
			}
		}
	}
}

// TestModelOfWarnings: a card warns of outliers among its own rows only.
func TestModelOfWarnings(t *testing.T) {
	large, small, _ := twoModels(t)
	wild := slices.Clone(large[:30])
	wild[7].StepSec = []float64{12 * wild[7].StepSec[0]}
	whole := condition(t, slices.Concat(wild, small[:20]))
	_, of := whole.Of(large[0].Config.Key())
	_, other := whole.Of(small[0].Config.Key())
	if len(of.Warnings) != 1 || len(other.Warnings) != 0 {
		t.Errorf("warnings %q of the model with an outlier, %q of the other", of.Warnings, other.Warnings)
	}
}

// TestPoolLowersError: on a machine a third slower than the prior predicts, ten rows of another model take most of the
// error of a model with two rows.
func TestPoolLowersError(t *testing.T) {
	large, small, _ := twoModels(t)
	rows := slices.Concat(large[:20], small[:4])
	o := perfmodel.PoolOptions{FitOptions: perfmodel.FitOptions{MaxRows: 10}}
	errors := map[bool]float64{}
	for _, o.Alone = range []bool{true, false} {
		fits, err := perfmodel.FitPool(t.Context(), Shipped().Family(), rows, o)
		if err != nil || len(fits) != 2 || fits[1].Err != nil {
			t.Fatal(fits, err)
		}
		if card := fits[1].Card; card.Model != "small" || card.NFit != 2 || card.NHeldOut != 2 || (card.NPooled == 10) == o.Alone {
			t.Fatalf("card %+v", card)
		}
		errors[o.Alone] = meanError(t, fits[1].Fitted, small[4:])
	}
	if errors[false] > 0.7*errors[true] {
		t.Errorf("mean error %.3f with rows of another model, %.3f without", errors[false], errors[true])
	}
}

// TestPoolOfOneRowEach: rows without others that could predict them are not scored, and the card says so.
func TestPoolOfOneRowEach(t *testing.T) {
	large, small, _ := twoModels(t)
	fits, err := perfmodel.FitPool(t.Context(), Shipped().Family(), []spec.Measurement{large[0], small[0]}, perfmodel.PoolOptions{})
	if err != nil || len(fits) != 2 {
		t.Fatal(fits, err)
	}
	for _, f := range fits {
		if f.Err != nil || f.Card.NHeldOut != 0 || !slices.Contains(f.Card.Warnings, "perfmodel: 1 of 1 configurations not cross-validated: too few others") {
			t.Errorf("%+v, %v", f.Card, f.Err)
		}
	}
	fits, err = perfmodel.FitPool(t.Context(), Shipped().Family(), []spec.Measurement{large[0], large[1], small[0]}, perfmodel.PoolOptions{})
	if err != nil || fits[0].Card.NHeldOut+fits[1].Card.NHeldOut != 3 || len(fits[0].Card.Warnings)+len(fits[1].Card.Warnings) != 0 {
		t.Errorf("%+v, %v, want three scored rows", fits, err)
	}
}
