package query

import (
	"fmt"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// rowsNamed returns rows of a model on 1 to n devices.
func rowsNamed(model string, n int) []spec.Measurement {
	var out []spec.Measurement
	for dp := 1; dp <= n; dp++ {
		c := spec.Config{Model: spec.Model{Name: model, Kind: spec.Opaque, ParamCount: 1e8, FLOPsPerSample: 1e10}, Shape: spec.NewShape(dp),
			Plan: spec.Plan{DP: dp, MicroBatch: 8}.Normal(), Accelerator: spec.Accelerator{Name: "Acme 1", FP32: 1e13, MemBytes: 16 << 30, MemBps: 5e11}}
		out = append(out, spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{1 + 0.1*float64(dp)}, Source: "test", Origin: fmt.Sprint(model, dp)})
	}
	return out
}

// resolverOf looks up in a store with rows and in a registry without fitted models.
func resolverOf(t *testing.T, rows ...spec.Measurement) *Resolver {
	t.Helper()
	db, reg := querytest.Open(t, rows...)
	return &Resolver{Fitted: reg, Read: func(use func(reader.Store) error) error { return use(db) }}
}

// TestFitOneModelOfAllNames: rows of all names of a model make one fitted model, which replaces those of each
// name that earlier versions stored. A fitted model of such a version still answers.
func TestFitOneModelOfAllNames(t *testing.T) {
	rows := append(rowsNamed("acme_lm", 3), rowsNamed("Acme LM", 3)...)
	d := resolverOf(t, rows...)
	reg := d.Fitted
	for mape, name := range []string{"acme_lm", "Acme LM"} {
		card := perfmodel.Card{Key: spec.Key{Model: name, Accelerator: "Acme 1"}, Family: "rubick", NFit: 3, MAPE: float64(mape)}
		if err := reg.Put(card, &analytic.Model{}); err != nil {
			t.Fatal(err)
		}
	}
	q := Request{Model: "ACME-LM", Accelerator: "acme 1", Family: "rubick"}
	target, err := d.Target(t.Context(), &q)
	if err != nil || target.card.Model != "acme_lm" || target.model.Name != "acme_lm" {
		t.Fatalf("with the cards of an earlier version: %+v, %v", target, err)
	}

	fam, err := family.Lookup("rubick")
	if err != nil {
		t.Fatal(err)
	}
	if rows, err = d.Rows(t.Context(), store.Filter{}); err != nil {
		t.Fatal(err)
	}
	cards, skipped, err := FitAll(t.Context(), fam, reg, rows, perfmodel.PoolOptions{})
	if err != nil || len(skipped) > 0 || len(cards) != 1 || cards[0].Model != "Acme LM" {
		t.Fatalf("fitted %v, skipped %q, %v", cards, skipped, err)
	}
	if left, err := reg.List(); err != nil || len(left) != 1 || left[0].Model != "Acme LM" {
		t.Errorf("the registry holds %v, %v, want Acme LM alone", left, err)
	}
	r, err := d.Resolve(t.Context(), q)
	if err != nil || r.Family != "rubick" || r.Model.Name != "Acme LM" {
		t.Errorf("%+v is answered by %s of %s, %v", q, r.Family, r.Model.Name, err)
	}
}

// TestMeasuredByAnyName: on an accelerator of the store alone, the measurements of all names of the model say how
// it was trained.
func TestMeasuredByAnyName(t *testing.T) {
	rows := append(rowsNamed("meta-llama/Meta-Llama-3-8B", 2), rowsNamed("Llama2-7B", 1)...)
	rows[0].Config.SeqLen, rows[1].Config.SeqLen = 1234, 1234
	d := resolverOf(t, rows...)
	target, err := d.Target(t.Context(), &Request{Model: "llama3-8b", Accelerator: "acme 1", Family: Auto})
	if err != nil || target.seqLen != 1234 {
		t.Errorf("%+v, %v, want 1234 tokens", target, err)
	}
}

// TestOneName: a model takes the first name of its rows.
func TestOneName(t *testing.T) {
	var rows []spec.Measurement
	for _, name := range []string{"llama-2-7b", "llama3-8b", "Llama-3.1-8B", "b_1", "B 1"} {
		rows = append(rows, rowsNamed(name, 1)...)
	}
	want := []string{"llama-2-7b", "llama3-8b", "llama3-8b", "b_1", "b_1"}
	for i, m := range OneName(rows) {
		if m.Config.Model.Name != want[i] {
			t.Errorf("%q becomes %q, want %q", rows[i].Config.Model.Name, m.Config.Model.Name, want[i])
		}
	}
}
