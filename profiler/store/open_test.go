package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func TestParallelPuts(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, Options{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var sum Counts
	for g := range 8 {
		wg.Go(func() { // every row is put twice
			for i := range 50 {
				c, err := db.PutAll(context.Background(), rowfiletest.Invented((g/2)*100+i), rowfiletest.Invented((g/2)*100+i+1000))
				if err != nil {
					t.Error(err)
				}
				if _, err := db.Len(context.Background(), Filter{}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				sum.Add(c)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	mustClose(t, db)
	if want := (Counts{Added: 400, Unchanged: 400}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
	if got := collect(t, openTest(t, dir, Options{ReadOnly: true}), Filter{}); len(got) != 400 {
		t.Errorf("%d rows, want 400", len(got))
	}
}

func TestCloseWaits(t *testing.T) {
	db := filled(t, 200)
	started, closed := make(chan bool), make(chan error)
	go func() {
		<-started
		closed <- db.Close()
	}()
	n := 0
	for _, err := range db.Query(context.Background(), Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 1 {
			started <- true
			time.Sleep(20 * time.Millisecond)
		}
	}
	if err := <-closed; n != 200 || err != nil {
		t.Errorf("%d rows, then %v", n, err)
	}
	if err := db.Put(context.Background(), rowfiletest.Invented(0)); !errors.Is(err, ErrClosed) {
		t.Errorf("Put after Close: %v", err)
	}
	for _, err := range db.Query(context.Background(), Filter{}) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("Query after Close: %v", err)
		}
	}
	if err := db.Compact(); !errors.Is(err, ErrClosed) {
		t.Errorf("Compact after Close: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	cmd, out, in := helper(t, "hold", dir)
	if !out.Scan() {
		t.Fatal("the other process did not open the store")
	}
	for _, o := range []Options{{}, {ReadOnly: true}} {
		_, err := Open(dir, o)
		if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", cmd.Process.Pid)) {
			t.Errorf("got %v, want ErrLocked with the directory and the other's pid", err)
		}
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	first := openTest(t, dir, Options{ReadOnly: true})
	openTest(t, dir, Options{ReadOnly: true})
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("opening for writing beside a reader: %v", err)
	}
	if err := first.Put(context.Background(), rowfiletest.Invented(0)); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Put into a read-only store: %v", err)
	}
	if err := first.Compact(); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Compact of a read-only store: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	if _, err := Open(none, Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), none) {
		t.Errorf("no store: %v", err)
	}
	if _, err := os.Stat(none); !errors.Is(err, fs.ErrNotExist) {
		t.Error("opening read-only made a directory")
	}
	if _, err := Open(t.TempDir(), Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty directory: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	spectest.WriteFile(t, file, nil, 0o644)
	if _, err := Open(file, Options{}); err == nil || !strings.HasPrefix(err.Error(), "store: ") {
		t.Errorf("a file: %v", err)
	}
	other := t.TempDir() // a badger store of another program
	bdb, err := badger.Open(badger.DefaultOptions(other).WithLogger(nil))
	if err == nil {
		err = bdb.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(other, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("someone else's store: %v", err)
	}
}

// TestLogf checks that the engine's messages go to the caller's function only.
func TestLogf(t *testing.T) {
	var mu sync.Mutex
	n := 0
	db := openTest(t, t.TempDir(), Options{Logf: func(string, ...any) { mu.Lock(); n++; mu.Unlock() }})
	mustPut(t, db, rowfiletest.Invented(0))
	db.Close()
	if n == 0 {
		t.Error("no message came")
	}
}

// TestSize checks that a store with few rows takes little disk space, opens and closes fast, and that opening
// it many times leaves no logs and at most one table each time.
func TestSize(t *testing.T) {
	const times = 12
	dir := t.TempDir()
	for i := range times {
		start := time.Now()
		db := mustOpen(t, dir, Options{})
		mustPut(t, db, rowfiletest.Invented(i))
		mustClose(t, db)
		if d := time.Since(start); d > spectest.Patience(time.Second) { // 30 ms on an idle machine
			t.Errorf("open, put and close took %v", d)
		}
	}
	total, kinds := 0, map[string]int{}
	for name, b := range snapshot(t, dir) {
		kinds[filepath.Ext(name)]++
		if name != "DISCARD" { // 1 MiB of zeros, sparse
			total += len(b)
		}
	}
	if total > 64<<10 || kinds[".sst"] > times || kinds[".vlog"] > 2 || kinds[".mem"] > 0 {
		t.Errorf("%d rows take %d bytes in files of these kinds: %v", times, total, kinds)
	}
}

func TestCompact(t *testing.T) {
	dir := t.TempDir()
	db := openTest(t, dir, Options{})
	for round := range 3 {
		for i := range 40 {
			m := numbered(13 + 97*i) // in the value log
			m.Env["round"] = fmt.Sprint(round)
			mustPut(t, db, m)
		}
	}
	want := collect(t, db, Filter{})
	if err := db.Compact(); err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(want, collect(t, db, Filter{})); d != "" || len(want) != 40 {
		t.Errorf("%d rows before, changed by compaction: %s", len(want), d)
	}
}

// BenchmarkPut writes new rows in batches, each synced.
func BenchmarkPut(b *testing.B) {
	for _, batch := range []int{1, 256} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			db := openTest(b, b.TempDir(), Options{})
			next := 0
			for b.Loop() {
				ms := make([]spec.Measurement, batch)
				for i := range ms {
					ms[i] = rowfiletest.Invented(next)
					next++
				}
				mustPut(b, db, ms...)
			}
			b.ReportMetric(float64(next)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkQuery reads the rows of one model on one accelerator, a sixth of the store, and all rows.
func BenchmarkQuery(b *testing.B) {
	db := filled(b, 6000)
	for name, f := range map[string]Filter{"key": {Models: []string{"tiny-1"}, Accelerators: []string{"X1"}}, "all": {}} {
		b.Run("rows="+name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n += len(collect(b, db, f))
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func BenchmarkOpenClose(b *testing.B) {
	for _, rows := range []int{0, 5000} {
		for _, readOnly := range []bool{false, true} {
			b.Run(fmt.Sprintf("rows=%d/readonly=%v", rows, readOnly), func(b *testing.B) {
				dir := b.TempDir()
				db, err := Open(dir, Options{})
				if err == nil {
					err = errors.Join(db.Put(context.Background(), rowfiletest.InventedRows(rows)...), db.Close())
				}
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					db, err := Open(dir, Options{ReadOnly: readOnly})
					if err == nil {
						err = db.Close()
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
