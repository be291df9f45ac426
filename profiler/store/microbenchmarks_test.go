package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// microbenchmarksOf returns micro-benchmarks of an accelerator.
func microbenchmarksOf(name string, sec float64) spec.Microbenchmarks {
	return spec.Microbenchmarks{Accelerator: spec.Accelerator{Name: name, FP32: 1e12, MemBytes: 1e9, MemBps: 1e9},
		Rows: []spec.Microbenchmark{{Op: "copy", Bytes: 8, Sec: []float64{sec, 2 * sec, 3 * sec}}}}
}

// TestMicrobenchmarks: rows of an accelerator come with its newest micro-benchmarks, before and after the store is opened
// again and restored from a backup, and are not changed themselves.
func TestMicrobenchmarks(t *testing.T) {
	dir := t.TempDir()
	db := openTest(t, dir, Options{})
	row := numbered(1)
	mustPut(t, db, row)
	check := func(db *DB, want string) {
		t.Helper()
		for m, err := range db.Query(t.Context(), Filter{}) {
			if err != nil || m.Config.Accelerator.Measured != want {
				t.Errorf("the row has %q, %v; want %q", m.Config.Accelerator.Measured, err, want)
			}
		}
		rs, err := db.Records(t.Context(), Filter{})
		if err != nil || len(rs) != 1 || rs[0].Row.Config.Accelerator.Measured != want {
			t.Errorf("the records are %+v, %v; want one with %q", rs, err, want)
		}
		if got, err := db.MeasuredText(t.Context(), row.Config.Accelerator.Name); err != nil || got != want {
			t.Errorf("measured %q, %v; want %q", got, err, want)
		}
	}
	check(db, "")
	b := microbenchmarksOf(row.Config.Accelerator.Name, 1)
	for _, sec := range []float64{1, 2} {
		b = microbenchmarksOf(row.Config.Accelerator.Name, sec)
		if err := errors.Join(db.PutMicrobenchmarks(t.Context(), b), db.PutMicrobenchmarks(t.Context(), microbenchmarksOf("another", 7))); err != nil {
			t.Fatal(err)
		}
		want, _ := b.Digest()
		check(db, want)
	}
	want, _ := b.Digest()
	if n, err := db.PutAll(t.Context(), row); err != nil || n.Unchanged != 1 {
		t.Errorf("storing the row again: %+v, %v; want it unchanged", n, err)
	}
	var backup bytes.Buffer
	if err := errors.Join(db.Backup(&backup), db.Close()); err != nil {
		t.Fatal(err)
	}
	db = openTest(t, dir, Options{ReadOnly: true})
	check(db, want)
	if err := db.PutMicrobenchmarks(t.Context(), b); !errors.Is(err, ErrReadOnly) {
		t.Errorf("stored read-only: %v", err)
	}
	file, restored := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	if err := errors.Join(os.WriteFile(file, backup.Bytes(), 0o600), Restore(file, restored)); err != nil {
		t.Fatal(err)
	}
	check(openTest(t, restored, Options{}), want)
}

func TestMicrobenchmarksRefused(t *testing.T) {
	db := openTest(t, t.TempDir(), Options{})
	for want, b := range map[string]spec.Microbenchmarks{
		"have no rows":         {Accelerator: microbenchmarksOf("a", 1).Accelerator},
		"contains a NUL byte":  microbenchmarksOf("a\x00", 1),
		"rows[0].sec [-1 -2 -": microbenchmarksOf("a", -1),
	} {
		if err := db.PutMicrobenchmarks(t.Context(), b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if all, err := db.Measured(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v: something was stored", all, err)
	}
}
