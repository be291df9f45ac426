package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestKill kills a writing process at random moments. The store must open and hold every row for which Put
// returned, unchanged. It runs 15 rounds, or 100 if PACER_SOAK is set.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills 15 writers")
	}
	rounds := 15
	if os.Getenv("PACER_SOAK") != "" {
		rounds = 100
	}
	rng := rand.New(rand.NewPCG(1, uint64(rounds)))
	dir, acked := "", 0
	for round := range rounds {
		if round%5 == 0 {
			dir, acked = t.TempDir(), 0
		}
		acked = max(acked, killWriter(t, dir, time.Duration(rng.IntN(400))*time.Millisecond))
		if n := checkAcked(t, dir, acked, round%2 == 0); t.Failed() {
			t.Fatalf("round %d: %d rows acknowledged, %d stored", round, acked, n)
		}
	}
}

// killWriter runs a writer on dir for d and returns the last number it
// printed, 0 if none.
func killWriter(t *testing.T, dir string, d time.Duration) (acked int) {
	t.Helper()
	cmd, out, _ := helper(t, "write", dir)
	time.AfterFunc(d, func() { _ = cmd.Process.Kill() })
	for out.Scan() {
		n, err := strconv.Atoi(out.Text())
		if err != nil {
			t.Fatalf("writer printed %q", out.Text())
		}
		acked = n
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("writer ended by itself: %v", err)
	}
	return acked
}

// checkAcked opens the store in dir and compares rows 0 to acked-1.
func checkAcked(t *testing.T, dir string, acked int, readOnly bool) (rows int) {
	t.Helper()
	db, err := Open(dir, Options{ReadOnly: readOnly})
	if acked == 0 && errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Error(err)
		return 0
	}
	defer db.Close()
	found := make([]bool, acked)
	for m, err := range db.Query(context.Background(), Filter{}) {
		if err != nil {
			t.Error(err)
			return rows
		}
		rows++
		i, err := strconv.Atoi(m.Origin)
		if err != nil || !reflect.DeepEqual(m, numbered(i)) {
			t.Errorf("row %q is not as it was stored: %v", m.Origin, err)
		}
		if i < acked {
			found[i] = true
		}
	}
	for i, ok := range found {
		if !ok {
			t.Errorf("row %d is lost", i)
		}
	}
	return rows
}

// crashedStore returns a copy of a store as after a kill, with tables, several transactions in its memtable's
// log, and a value log. The copy is made from the directory of a running writer.
func crashedStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd, out, _ := helper(t, "write", dir)
	for out.Scan() {
		n, _ := strconv.Atoi(out.Text())
		if n < 6000 {
			continue
		}
		tables, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
		logs, _ := filepath.Glob(filepath.Join(dir, "*.mem"))
		if len(tables) > 0 && len(logs) > 0 && logTxns(t, logs[0]) > 5 {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return dir
}

func logTxns(t *testing.T, path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0 // flushed in the meantime
	}
	w := walkLog(b)
	return int(w.txns.last - w.txns.first)
}

// copyDir copies a store, except for most of the zeros at the end of its logs. If the engine removes a log
// meanwhile, because its table is written, the copy begins anew.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		ext := filepath.Ext(e.Name())
		switch {
		case errors.Is(err, fs.ErrNotExist) && ext == ".mem":
			return copyDir(t, from)
		case err != nil:
			t.Fatal(err)
		case (ext == ".mem" || ext == ".vlog") && len(b) > logHead:
			for rest := len(b) - 2*len(zeros); rest >= logHead && allZero(b[rest:]); rest = len(b) - 2*len(zeros) {
				b = b[:len(b)-len(zeros)]
			}
		}
		spectest.WriteFile(t, filepath.Join(to, e.Name()), b, 0o644)
	}
	return to
}

// snapshot returns the content of all files of dir except the lock.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	s := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == lockFile {
			continue
		}
		b := spectest.ReadFile(t, filepath.Join(dir, e.Name()))
		s[e.Name()] = string(b)
	}
	return s
}

// damage changes one file of a store.
type damage struct {
	name   string
	change func(b []byte) []byte // nil to remove the file
}

func flip(at float64) func([]byte) []byte {
	return func(b []byte) []byte {
		b[int(at*float64(len(b)-1))] ^= 0x10
		return b
	}
}

func truncate(at float64) func([]byte) []byte {
	return func(b []byte) []byte { return b[:int(at*float64(len(b)))] }
}

// flipUsed flips a byte in the part of a log that has entries.
func flipUsed(at float64) func([]byte) []byte {
	return func(b []byte) []byte {
		b[logHead+int(at*float64(walkLog(b).end-logHead))] ^= 0x10
		return b
	}
}

// checkDamage damages a copy of the store in dir. Opening it must fail with ErrCorrupt, name the directory and
// the file, and leave all files unchanged.
func checkDamage(t *testing.T, dir, file string, change func([]byte) []byte) {
	t.Helper()
	dir = copyDir(t, dir)
	path := filepath.Join(dir, file)
	if change == nil {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	} else {
		b := spectest.ReadFile(t, path)
		spectest.WriteFile(t, path, change(b), 0o644)
	}
	before := snapshot(t, dir)
	for _, o := range []Options{{}, {ReadOnly: true}} {
		db, err := Open(dir, o)
		if err == nil {
			db.Close()
			t.Fatalf("%s: a damaged store was opened", file)
		}
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %q, want one that is ErrCorrupt and names the file", file, err)
		}
		if !reflect.DeepEqual(before, snapshot(t, dir)) {
			t.Fatalf("%s: opening changed files", file)
		}
	}
}

// biggest returns the largest file of dir that matches pattern.
func biggest(t *testing.T, dir, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s in %s", pattern, dir)
	}
	best, size := "", int64(-1)
	for _, n := range names {
		b := spectest.ReadFile(t, n)
		used := int64(len(b))
		if ext := filepath.Ext(n); ext == ".vlog" || ext == ".mem" {
			used = int64(walkLog(b).end)
		}
		if used > size {
			best, size = filepath.Base(n), used
		}
	}
	return best
}

// namedTable returns a table of the store in dir that its MANIFEST names. A table that is not named is the
// input or unfinished output of an interrupted compaction; its rows are in other tables too, so damage to it is
// not an error.
func namedTable(t *testing.T, dir string) string {
	t.Helper()
	tables, err := readManifest(dir)
	if err != nil || len(tables) == 0 {
		t.Fatalf("MANIFEST names %d tables, %v", len(tables), err)
	}
	return fmt.Sprintf("%06d.sst", slices.Min(slices.Collect(maps.Keys(tables))))
}
