package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// A sound store has no faults, while rows are written, after it was closed, and after it was compacted.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, Options{})
	mustPut(t, db, rowfiletest.InventedRows(400)...)
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 400; i < 10_000; i += 40 { // no more: each verification reads all rows
			select {
			case <-stop:
				ended <- nil
				return
			default:
				if err := db.Put(context.Background(), rowsFrom(i, 40)...); err != nil {
					ended <- err
					return
				}
			}
		}
		ended <- nil
	}()
	for range 5 {
		got, err := db.Verify(t.Context())
		if err != nil || len(got.Faults) > 0 || got.Rows < 400 || got.Bytes < 10000 {
			t.Fatalf("under writes: %+v, %v", got, err)
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	before, err := db.Size()
	if err != nil {
		t.Fatal(err)
	}
	n, err := db.Len(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Compact(); err != nil {
		t.Fatal(err)
	}
	got, err := db.Verify(t.Context())
	if err != nil || len(got.Faults) > 0 || got.Rows != n || got.Bytes > 2*before {
		t.Errorf("compacted: %+v, %v, want %d rows", got, err, n)
	}
	mustClose(t, db)
	db = openTest(t, dir, Options{ReadOnly: true})
	if got, err = db.Verify(t.Context()); err != nil || len(got.Faults) > 0 || got.Rows != n {
		t.Errorf("closed: %+v, %v, want %d rows", got, err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Damage of a file under an open store is a fault that names the file.
func TestVerifyFindsDamage(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, Options{})
	for i := 0; len(globbed(t, dir, "*.sst")) == 0; i += 100 {
		mustPut(t, db, rowsFrom(i, 100)...)
	}
	mustClose(t, db)
	db = openTest(t, dir, Options{})
	if got, err := db.Verify(t.Context()); err != nil || len(got.Faults) > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	table := globbed(t, dir, "*.sst")[0]
	b := spectest.ReadFile(t, table)
	b[len(b)/3] ^= 0x40
	spectest.WriteFile(t, table, b, 0o644)
	got, err := db.Verify(t.Context())
	if err != nil || len(got.Faults) == 0 || !strings.Contains(got.Faults[0], filepath.Base(table)) {
		t.Errorf("%+v, %v, want a fault of %s", got, err, table)
	}
	b[len(b)/3] ^= 0x40
	spectest.WriteFile(t, table, b, 0o644)
}

func globbed(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return names
}
