package store

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// DB.Batches writes the record batches of Query, also of quarantined rows, of several groups, and of rows with settings
// that change from one to the next.
func TestBatchesAreOfQuery(t *testing.T) {
	ctx := t.Context()
	db := openTest(t, t.TempDir(), Options{})
	rows := decodedRows()
	for i := range 300 {
		m := rowfiletest.Invented(i)
		m.Source = []string{"a", "b"}[i%2]
		if i%3 == 0 {
			m.Config.Framework, m.Config.Link.InterBps = "FSDP", float64(1+i)
		}
		if i%7 == 0 {
			m.Outcome, m.Reason, m.StepSec = spec.Failed, "it stopped", nil
		}
		rows = append(rows, m)
	}
	if err := db.Put(ctx, rows...); err != nil {
		t.Fatal(err)
	}
	odd := records(t, db, Filter{Sources: []string{"b"}})
	if _, err := db.Quarantine(ctx, odd, repeated("odd", len(odd))); err != nil || len(odd) < 100 {
		t.Fatal(len(odd), err)
	}
	for _, f := range []Filter{{}, {Sources: []string{"b"}}, {Models: []string{"none"}}} {
		var want, got []arrow.Record
		n, err := rowfile.Batches(keepRecords(&want), 100, db.Query(ctx, f))
		if err != nil {
			t.Fatal(err)
		}
		if m, err := db.Batches(ctx, keepRecords(&got), 100, f); m != n || err != nil || len(got) != len(want) {
			t.Fatalf("%v: %d rows in %d batches, %v, want %d in %d", f, m, len(got), err, n, len(want))
		}
		for i := range want {
			if !array.RecordEqual(want[i], got[i]) {
				t.Errorf("%v: batch %d: %v, want %v", f, i, got[i], want[i])
			}
		}
	}
}

func keepRecords(to *[]arrow.Record) func(arrow.Record) error {
	return func(rec arrow.Record) error {
		rec.Retain()
		*to = append(*to, rec)
		return nil
	}
}

func TestStoreToFileToStore(t *testing.T) {
	ctx := context.Background()
	a, b := openTest(t, t.TempDir(), Options{}), openTest(t, t.TempDir(), Options{})
	if err := a.Put(ctx, rowfiletest.InventedRows(300)...); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rows.parquet")
	if n, err := rowfile.ExportFile(path, rowfile.Parquet, a.Query(ctx, Filter{})); err != nil || n != 300 {
		t.Fatal(n, err)
	}
	ms, errs := rowfiletest.Gather(rowfile.ReadParquet(path))
	if errs != nil {
		t.Fatal(errs)
	}
	if err := b.Put(ctx, ms...); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(collect(t, a, Filter{}), collect(t, b, Filter{})); d != "" {
		t.Fatal(d)
	}
	if c, err := a.PutAll(ctx, ms...); err != nil || c != (Counts{Unchanged: 300}) {
		t.Errorf("importing the store's own export: %+v, %v, want all unchanged", c, err)
	}
}
