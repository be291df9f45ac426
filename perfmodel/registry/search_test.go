package registry

import (
	"errors"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestHostRegularOfAll: the predictor is regular if all models are that may answer.
func TestHostRegularOfAll(t *testing.T) {
	if p := (&predictor{unfitted: irregular{}}); p.HostRegular() {
		t.Error("regular with an irregular model before a fit")
	}
	if p := (&predictor{}); !p.HostRegular() {
		t.Error("irregular without a model")
	}
}

type irregular struct{ perfmodel.Predictor }

// TestBrokenModelsAreNotReplaced: a model with a card but without readable parameters is an error, by each of its
// names, though its family predicts before a fit.
func TestBrokenModelsAreNotReplaced(t *testing.T) {
	key, want := spec.Key{Model: "m", Accelerator: "a"}, errors.New("unreadable")
	p := &predictor{unfitted: irregular{}, canonical: strings.ToLower, names: map[spec.Key]string{key: "m"}, broken: map[spec.Key]error{key: want}}
	for _, name := range []string{"m", "M"} {
		if _, err := p.Predict(t.Context(), config(spec.Key{Model: name, Accelerator: "a"}, 1)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

// TestPredictorSearches: the registry's predictor forwards the optional search interfaces of its models, with
// the results of Predict.
func TestPredictorSearches(t *testing.T) {
	r := newRegistry(t)
	key := spec.Key{Model: "m", Accelerator: "a"}
	put(t, r, key, 1)
	hybrid, err := family.Lookup("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	row := spec.Measurement{Config: config(key, 2), Outcome: spec.OK, Source: "test", StepSec: []float64{0.5}}
	fitted, card, err := perfmodel.FitKey(t.Context(), hybrid, []spec.Measurement{row}, perfmodel.FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Put(card, fitted); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rubick", "hybrid"} {
		p, err := r.Predictor(name, strings.ToLower)
		if err != nil {
			t.Fatal(err)
		}
		c := config(key, 4)
		want, err := p.Predict(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		prepared, err := p.(perfmodel.Preparer).Prepare(c)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := prepared.Predict(c.Plan, c.SeqLen); err != nil || got.Throughput != want.Throughput || got.MemoryBytes != 0 {
			t.Errorf("%s: prepared %+v (%v), predicted %+v", name, got, err, want)
		}
		least, err := p.(perfmodel.Bounder).StepAtLeast(c)
		if err != nil {
			t.Fatal(err)
		}
		if sec, _, _ := want.StepSec(c.Plan.GlobalBatch()); least != nil && least(&c.Plan, &c.Shape) > sec {
			t.Errorf("%s: at least %g s, predicted %g", name, least(&c.Plan, &c.Shape), sec)
		}
		if h, ok := p.(interface{ HostRegular() bool }); !ok || !h.HostRegular() {
			t.Errorf("%s does not call itself regular", name)
		}
		other := config(spec.Key{Model: "unknown", Accelerator: "a"}, 4)
		f, err := p.(perfmodel.Preparer).Prepare(other)
		if err != nil {
			t.Fatalf("%s: preparing for an unknown model: %v", name, err)
		}
		got, err := f.Predict(other.Plan, other.SeqLen)
		if name == "rubick" && !errors.Is(err, perfmodel.ErrNotCovered) {
			t.Errorf("%s: an unknown model: %v", name, err)
		}
		if name == "hybrid" {
			if before, want := hybrid.Unfitted.Predict(t.Context(), other); err != nil || want != nil || got.Throughput != before.Throughput {
				t.Errorf("%s: an unknown model: %g samples/s, %v, want %g as before a fit", name, got.Throughput, err, before.Throughput)
			}
		}
	}
}
