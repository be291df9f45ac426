package query

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// resolverOf looks up in a store with rows and in a registry without fitted models.
func resolverOf(t *testing.T, rows ...spec.Measurement) *Resolver {
	t.Helper()
	db, err := store.Open(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Put(t.Context(), rows...); err != nil {
		t.Fatal(err)
	}
	reg, err := registry.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Resolver{Fitted: reg, Read: func(use func(*store.DB) error) error { return use(db) }}
}
