package store

import (
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// DB.Batches writes the record batches of Query, also of quarantined rows, of several groups, and of rows with settings
// that change from one to the next.
func TestBatchesAreOfQuery(t *testing.T) {
	ctx := t.Context()
	db := openTest(t, t.TempDir(), Options{})
	rows := decodedRows()
	for i := range 300 {
		m := invented(i)
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
		n, err := Batches(keepRecords(&want), 100, db.Query(ctx, f))
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
