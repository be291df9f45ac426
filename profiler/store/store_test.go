package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// invented returns the i-th of a list of measurements nobody took.
func invented(i int) spec.Measurement {
	m := spec.Measurement{
		Config: spec.Config{
			Model: spec.Model{Name: fmt.Sprintf("tiny-%d", i%3), Kind: spec.Decoder, Layers: 4, Hidden: 64, FFN: 256, Heads: 4,
				KVHeads: 2, Vocab: 1000, SeqLen: 128, GatedMLP: true, ParamCount: 1.25e6},
			Plan: spec.Plan{DP: 1 + i%2, TP: 2, PP: 1, MicroBatch: 1 + i%4, AccumSteps: 2, ZeRO: 1,
				Recompute: spec.RecomputeFull, Precision: spec.BF16},
			Accelerator: spec.Accelerator{Name: fmt.Sprintf("X%d", i%2), Vendor: "Acme", BF16: 1e14, MemBytes: 1 << 34, MemBps: 1e12},
			Shape:       spec.Shape{Devices: "2+2", CPUs: 16, HostBytes: 1 << 36},
			Link:        spec.Link{IntraBps: 1e11, InterBps: 1e10},
			Framework:   "loop",
		},
		Outcome:   spec.OK,
		StepSec:   []float64{0.1 + float64(i)/1000, 0.11, 0.125},
		PhaseSec:  map[string]float64{"forward": 0.03, "backward": 0.06},
		PeakBytes: 1.5e9,
		Source:    fmt.Sprintf("invented/%d", i%5),
		Origin:    fmt.Sprintf("rows.csv:%d", i),
		At:        time.Date(2024, 5, 1, 12, 0, i, 123456789, time.UTC),
		Env:       map[string]string{"driver": "1.2", "note": "made up"},
	}
	if i%7 == 6 {
		m.Outcome, m.Reason, m.StepSec, m.PhaseSec = spec.OOM, "out of memory on rank 0", nil, nil
	}
	return m
}

func inventedRows(n int) []spec.Measurement {
	ms := make([]spec.Measurement, n)
	for i := range ms {
		ms[i] = invented(i)
	}
	return ms
}

func openTest(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	db, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// filled returns an open store with n invented rows.
func filled(t testing.TB, n int) *DB {
	t.Helper()
	db := openTest(t, t.TempDir(), Options{})
	if err := db.Put(context.Background(), inventedRows(n)...); err != nil {
		t.Fatal(err)
	}
	return db
}

func collect(t testing.TB, db *DB, f Filter) []spec.Measurement {
	t.Helper()
	var out []spec.Measurement
	for m, err := range db.Query(context.Background(), f) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func TestPutAllCounts(t *testing.T) {
	ctx := context.Background()
	db := openTest(t, t.TempDir(), Options{})
	renewed := func(i int, change func(*spec.Measurement)) spec.Measurement {
		m := invented(i)
		change(&m)
		return m
	}
	cases := []struct {
		name string
		rows []spec.Measurement
		want Counts
	}{
		{"none", nil, Counts{}},
		{"new", inventedRows(2000), Counts{Added: 2000}}, // several transactions
		{"again", inventedRows(2000), Counts{Unchanged: 2000}},
		{"twice in one call", []spec.Measurement{invented(3000), invented(3000)}, Counts{Added: 1, Unchanged: 1}},
		{"figures of the model", []spec.Measurement{renewed(0, func(m *spec.Measurement) { m.Config.Model.Vocab++ })}, Counts{Updated: 1}},
		{"figures of the accelerator", []spec.Measurement{renewed(1, func(m *spec.Measurement) { m.Config.Accelerator.Watts++ })}, Counts{Updated: 1}},
		{"link, doubt, phases, environment", []spec.Measurement{
			renewed(2, func(m *spec.Measurement) { m.Config.Link.HostBps++ }),
			renewed(3, func(m *spec.Measurement) { m.Doubt = "odd" }),
			renewed(4, func(m *spec.Measurement) { m.PhaseSec = nil }),
			renewed(5, func(m *spec.Measurement) { m.Env = map[string]string{"driver": "2"} }),
		}, Counts{Updated: 4}},
		{"degree 1 written as 0, time in another zone", []spec.Measurement{
			renewed(7, func(m *spec.Measurement) { m.At = m.At.In(time.FixedZone("", 3600)) }),
			renewed(8, func(m *spec.Measurement) { m.Config.Plan.PP = 0 }),
		}, Counts{Unchanged: 1, Updated: 1}},
		{"other observations", []spec.Measurement{
			renewed(9, func(m *spec.Measurement) { m.StepSec[1] = math.Nextafter(m.StepSec[1], 1) }),
			renewed(9, func(m *spec.Measurement) { m.Config.SeqLen = 64 }),
			renewed(9, func(m *spec.Measurement) { m.Config.Plan.ZeRO = 2 }),
			renewed(9, func(m *spec.Measurement) { m.Config.Shape.CPUs++ }),
			renewed(9, func(m *spec.Measurement) { m.Config.Framework = "" }),
			renewed(9, func(m *spec.Measurement) { m.PeakBytes++ }),
			renewed(9, func(m *spec.Measurement) { m.Origin = "" }),
			renewed(9, func(m *spec.Measurement) { m.At = time.Time{} }),
		}, Counts{Added: 8}},
	}
	rows := 0
	for _, c := range cases {
		got, err := db.PutAll(ctx, c.rows...)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
		rows += got.Added
	}
	if n, err := db.Len(ctx, Filter{}); n != rows || err != nil {
		t.Errorf("%d rows, %v, want %d", n, err, rows)
	}
	for _, m := range collect(t, db, Filter{}) {
		if m.Origin == "rows.csv:0" && m.Config.Model.Vocab != 1001 {
			t.Errorf("the update is not what is read: %+v", m)
		}
	}
}

func TestBadRows(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	cases := map[string]func(*spec.Measurement){
		"model name":       func(m *spec.Measurement) { m.Config.Model.Name = "" },
		"NUL":              func(m *spec.Measurement) { m.Source = "a\x00b" },
		"longer":           func(m *spec.Measurement) { m.Config.Accelerator.Name = strings.Repeat("x", 513) },
		"UTF-8":            func(m *spec.Measurement) { m.Env["x"] = "\xff" },
		"step time":        func(m *spec.Measurement) { m.StepSec[0] = nan },
		"peak memory":      func(m *spec.Measurement) { m.PeakBytes = inf },
		"forward":          func(m *spec.Measurement) { m.PhaseSec["forward"] = nan },
		"finite":           func(m *spec.Measurement) { m.Config.Model.ParamCount = nan },
		"time":             func(m *spec.Measurement) { m.At = time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC) },
		"larger than":      func(m *spec.Measurement) { m.StepSec = slices.Repeat([]float64{1.0 / 3}, 500_000) },
		"outcome":          func(m *spec.Measurement) { m.Outcome = "fine" },
		`origin "rows.csv`: func(m *spec.Measurement) { m.Source = "" },
	}
	db := openTest(t, t.TempDir(), Options{})
	for want, change := range cases {
		bad := invented(1)
		change(&bad)
		err := db.Put(context.Background(), invented(0), bad)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "store: row 2 of 2") {
			t.Errorf("got %v, want an error about row 2 with %q", err, want)
		}
	}
	if n, _ := db.Len(context.Background(), Filter{}); n != 0 {
		t.Errorf("%d rows stored beside bad ones, want none", n)
	}
}

// TestNoNaN puts NaN into every number of a measurement in turn.
func TestNoNaN(t *testing.T) {
	var walk func(v reflect.Value, name string, try func(string))
	walk = func(v reflect.Value, name string, try func(string)) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i), name+"."+v.Type().Field(i).Name, try)
				}
			}
		case reflect.Float64:
			old := v.Float()
			for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				v.SetFloat(x)
				try(name)
			}
			v.SetFloat(old)
		}
	}
	m := invented(0)
	n := 0
	walk(reflect.ValueOf(&m).Elem(), "m", func(name string) {
		n++
		if Check(m) == nil {
			t.Errorf("%s: not a number was accepted", name)
		}
	})
	if n < 3*18 {
		t.Errorf("only %d numbers were tried", n)
	}
}

// TestQuery compares every filter with a plain search through all rows.
func TestQuery(t *testing.T) {
	db := filled(t, 400)
	all := collect(t, db, Filter{})
	if !slices.IsSortedFunc(all, func(a, b spec.Measurement) int {
		x, y := groupOf(a), groupOf(b)
		return cmp.Or(cmp.Compare(x.model, y.model), cmp.Compare(x.accelerator, y.accelerator), cmp.Compare(x.source, y.source))
	}) {
		t.Error("rows are not ordered by model, accelerator, source")
	}
	want := inventedRows(400)
	slices.SortFunc(want, func(a, b spec.Measurement) int { return strings.Compare(string(rowKey(a)), string(rowKey(b))) })
	if d := gocmp.Diff(want, all); d != "" {
		t.Fatal(d)
	}
	name := func(words ...string) *rapid.Generator[[]string] {
		return rapid.SliceOfN(rapid.SampledFrom(words), 0, 3)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := Filter{
			Models:       name("tiny-0", "tiny-1", "tiny-2", "tiny-", "tiny-22", "z").Draw(t, "models"),
			Accelerators: name("X0", "X1", "X", "a").Draw(t, "accelerators"),
			Sources:      name("invented/0", "invented/3", "invented/4", "invented").Draw(t, "sources"),
		}
		var want []string
		for _, m := range all {
			if chosen(f.Models, m.Config.Model.Name) && chosen(f.Accelerators, m.Config.Accelerator.Name) && chosen(f.Sources, m.Source) {
				want = append(want, m.Origin)
			}
		}
		var got []string
		for m, err := range db.Query(context.Background(), f) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m.Origin)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %d rows %v, want %d %v", len(got), got, len(want), want)
		}
		if n, err := db.Len(context.Background(), f); n != len(want) || err != nil {
			t.Fatalf("Len = %d, %v, want %d", n, err, len(want))
		}
	})
}

// TestNames holds that names that begin with others are told apart.
func TestNames(t *testing.T) {
	db := openTest(t, t.TempDir(), Options{})
	names := []string{"a", "a\x01", "a\x01b", "a b", "aa", "é", "\U0010ffff", strings.Repeat("n", 512)}
	for i, model := range names {
		for _, acc := range names {
			m := invented(i)
			m.Config.Model.Name, m.Config.Accelerator.Name = model, acc
			if err := db.Put(context.Background(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range names {
		if got := collect(t, db, Filter{Models: []string{name}}); len(got) != len(names) {
			t.Errorf("model %.9q: %d rows, want %d", name, len(got), len(names))
		}
		if got := collect(t, db, Filter{Accelerators: []string{name}, Models: []string{"a", "é"}}); len(got) != 2 {
			t.Errorf("accelerator %.9q: %d rows, want 2", name, len(got))
		}
	}
}

// TestReadErrors puts values under row keys that are not theirs.
func TestReadErrors(t *testing.T) {
	good, err := encodeRecord(invented(0))
	if err != nil {
		t.Fatal(err)
	}
	for want, value := range map[string][]byte{
		"record version 9": []byte("\x09{}"),
		"version 2":        []byte("\x02{"),
		"the row is of":    good,
	} {
		db := openTest(t, t.TempDir(), Options{})
		if err := db.bdb.Update(func(txn *badger.Txn) error { return txn.Set(rowKey(invented(1)), value) }); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range db.Query(context.Background(), Filter{}) {
			if n++; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "tiny-1 on X1") {
				t.Errorf("got %v, want an error with %q and the row's names", err, want)
			}
		}
		if n != 1 {
			t.Errorf("%d yields, want 1", n)
		}
	}
}

func TestSummary(t *testing.T) {
	db := filled(t, 300)
	want := map[Tally]int{}
	for _, m := range collect(t, db, Filter{}) {
		want[Tally{m.Config.Model.Name, m.Config.Accelerator.Name, m.Source, m.Outcome, 0}]++
	}
	got, err := db.Summary(context.Background())
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d lines, %v, want %d", len(got), err, len(want))
	}
	for _, l := range got {
		key := l
		key.Rows = 0
		if l.Rows != want[key] {
			t.Errorf("%+v, want %d rows", l, want[key])
		}
	}
}

func TestQueryEnds(t *testing.T) {
	db := filled(t, 50)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	for m, err := range db.Query(ctx, Filter{}) {
		if n++; n == 10 {
			cancel()
		}
		if err != nil {
			if !errors.Is(err, context.Canceled) || n != 11 {
				t.Errorf("row %d: %v", n, err)
			}
			continue
		}
		// Writing while reading: the iteration goes on over what it began with.
		m.Origin += " again"
		if err := db.Put(context.Background(), m); err != nil {
			t.Fatal(err)
		}
	}
	if n != 11 {
		t.Errorf("%d yields after the context ended at the tenth, want 11", n)
	}
	for range db.Query(context.Background(), Filter{}) {
		break
	}
	if err := db.Put(ctx, invented(99)); !errors.Is(err, context.Canceled) {
		t.Errorf("Put after the context ended: %v", err)
	}
}

func TestParallelPuts(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var sum Counts
	for g := range 8 {
		wg.Go(func() { // every row is put twice
			for i := range 50 {
				c, err := db.PutAll(context.Background(), invented((g/2)*100+i), invented((g/2)*100+i+1000))
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
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
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
	if err := db.Put(context.Background(), invented(0)); !errors.Is(err, ErrClosed) {
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
	if err := first.Put(context.Background(), invented(0)); !errors.Is(err, ErrReadOnly) {
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
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, Options{}); err == nil || !strings.HasPrefix(err.Error(), "store: ") {
		t.Errorf("a file: %v", err)
	}
	other := t.TempDir() // a badger store that is not ours
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

// TestLogf holds that the engine's messages go to the caller's function only.
func TestLogf(t *testing.T) {
	var mu sync.Mutex
	n := 0
	db := openTest(t, t.TempDir(), Options{Logf: func(string, ...any) { mu.Lock(); n++; mu.Unlock() }})
	if err := db.Put(context.Background(), invented(0)); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if n == 0 {
		t.Error("no message came")
	}
}

// TestSize holds that a store of few rows takes little on disk, opens and
// closes fast, and that opening it many times leaves no logs behind: one table
// each time at most.
func TestSize(t *testing.T) {
	const times = 12
	dir := t.TempDir()
	for i := range times {
		start := time.Now()
		db, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Put(context.Background(), invented(i)); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 5*time.Second { // 30 ms on an idle machine
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
			if err := db.Put(context.Background(), m); err != nil {
				t.Fatal(err)
			}
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
					ms[i] = invented(next)
					next++
				}
				if err := db.Put(context.Background(), ms...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(next)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkQuery reads the rows of one model on one accelerator, a sixth of
// the store, and all.
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
					err = errors.Join(db.Put(context.Background(), inventedRows(rows)...), db.Close())
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
