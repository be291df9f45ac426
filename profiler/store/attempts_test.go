package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestAttempts: the point that a killed writer had begun is known until End, or until another point begins.
func TestAttempts(t *testing.T) {
	dir := t.TempDir()
	db := openTest(t, dir, Options{})
	begin := func(run, point string, want int) {
		t.Helper()
		if before, err := db.Begin(run, point); err != nil || before != want {
			t.Errorf("%s in %s: begun %d times before, %v; want %d", point, run, before, err, want)
		}
	}
	begin("r1", "a", 0)
	begin("r1", "a", 1)
	begin("r2", "a", 0)
	mustClose(t, db) // Close does not act as End
	db = openTest(t, dir, Options{})
	begin("r1", "a", 2)
	begin("r1", "b", 0)
	begin("r1", "a", 0)
	for _, run := range []string{"r1", "r1", "r3"} {
		if err := db.End(run); err != nil {
			t.Error(err)
		}
	}
	begin("r1", "a", 0)
	begin("r2", "a", 1)
	if err := errors.Join(db.End("r1"), db.End("r2")); err != nil {
		t.Error(err)
	}
	file := filepath.Join(dir, attemptsFile)
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing is measured, and %s is there: %v", attemptsFile, err)
	}
	for _, text := range []string{"", "null", `{"r1":`} {
		spectest.WriteFile(t, file, []byte(text), 0o600)
		if _, err := db.Begin("r1", "a"); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := errors.Join(os.Remove(file), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Begin("r1", "a"); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	db = mustOpen(t, dir, Options{ReadOnly: true})
	defer db.Close()
	if err := db.End("r1"); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
}
