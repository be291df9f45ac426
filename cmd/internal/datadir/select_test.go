package datadir

import (
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// TestSelectSpellings: a name selects the rows of all its spellings.
func TestSelectSpellings(t *testing.T) {
	d := &Dir{Given: t.TempDir(), Verb: "fit"}
	db, err := store.Open(filepath.Join(d.Given, "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Llama-3.1-8B", "llama3-8b", "Llama3-70B", "acme_lm"} {
		m := spec.Measurement{Outcome: spec.OK, StepSec: []float64{1}, Source: "lab/A-1", Config: spec.Config{
			Model: spec.Model{Name: name, Kind: spec.Opaque}, Plan: spec.Plan{DP: 1, MicroBatch: 1}.Normal(),
			Accelerator: spec.Accelerator{Name: "X"}, Shape: spec.Packed(1, 1)}}
		if err := db.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"Llama3-8B": 2, "LLAMA 3 8B": 2, "Acme LM": 1, "llama3-70b": 1, "llama": 0} {
		rows, err := d.Select(t.Context(), store.Filter{Models: []string{name}, Sources: []string{"LAB/a1"}})
		if len(rows) != want || (err != nil) != (want == 0) {
			t.Errorf("%s: %d rows, want %d, %v", name, len(rows), want, err)
		}
	}
}
