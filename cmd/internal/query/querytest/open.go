package querytest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Named returns a model and an accelerator of the catalog.
func Named(t testing.TB, model, accelerator string) (spec.Model, spec.Accelerator) {
	t.Helper()
	m, err := catalog.Model(model)
	if err != nil {
		t.Fatal(err)
	}
	a, err := catalog.Accelerator(accelerator)
	if err != nil {
		t.Fatal(err)
	}
	return m, a
}

// Open returns a store with rows, which is closed with the test, and a registry without fitted models. Its rows have the
// same provenance on every machine.
func Open(t testing.TB, rows ...spec.Measurement) (*store.DB, *registry.Registry) {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(filepath.Join(dir, "store"), store.Options{By: "tester@host", Now: func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if len(rows) > 0 {
		if err := db.Put(t.Context(), rows...); err != nil {
			t.Fatal(err)
		}
	}
	reg, err := registry.Open(filepath.Join(dir, "models"))
	if err != nil {
		t.Fatal(err)
	}
	return db, reg
}
