package querytest

import (
	"path/filepath"
	"testing"

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

// Open returns a store with rows, which is closed with the test, and a registry without fitted models.
func Open(t testing.TB, rows ...spec.Measurement) (*store.DB, *registry.Registry) {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(filepath.Join(dir, "store"), store.Options{})
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
