package store

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// mustOpen opens a store that the test closes.
func mustOpen(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	db, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func mustPut(t testing.TB, db *DB, rows ...spec.Measurement) {
	t.Helper()
	if err := db.Put(context.Background(), rows...); err != nil {
		t.Fatal(err)
	}
}

func mustClose(t testing.TB, db *DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// openTest opens a store that is closed when the test ends.
func openTest(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	db := mustOpen(t, dir, o)
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
	mustPut(t, db, rowfiletest.InventedRows(n)...)
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
		m := rowfiletest.Invented(i)
		change(&m)
		return m
	}
	cases := []struct {
		name string
		rows []spec.Measurement
		want Counts
	}{
		{"none", nil, Counts{}},
		{"new", rowfiletest.InventedRows(2000), Counts{Added: 2000}}, // several transactions
		{"again", rowfiletest.InventedRows(2000), Counts{Unchanged: 2000}},
		{"twice in one call", []spec.Measurement{rowfiletest.Invented(3000), rowfiletest.Invented(3000)}, Counts{Added: 1, Unchanged: 1}},
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
		bad := rowfiletest.Invented(1)
		change(&bad)
		err := db.Put(context.Background(), rowfiletest.Invented(0), bad)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "store: row 2 of 2") {
			t.Errorf("got %v, want an error about row 2 with %q", err, want)
		}
	}
	if n, _ := db.Len(context.Background(), Filter{}); n != 0 {
		t.Errorf("%d rows stored beside bad ones, want none", n)
	}
}

// TestQuery compares every filter with a linear search of all rows.
func TestQuery(t *testing.T) {
	db := filled(t, 400)
	all := collect(t, db, Filter{})
	if !slices.IsSortedFunc(all, func(a, b spec.Measurement) int {
		x, y := groupOf(a), groupOf(b)
		return cmp.Or(cmp.Compare(x.model, y.model), cmp.Compare(x.accelerator, y.accelerator), cmp.Compare(x.source, y.source))
	}) {
		t.Error("rows are not ordered by model, accelerator, source")
	}
	want := rowfiletest.InventedRows(400)
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
			if matches(f.Models, m.Config.Model.Name) && matches(f.Accelerators, m.Config.Accelerator.Name) && matches(f.Sources, m.Source) {
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

// TestNames: a name and a longer name that begins with it are distinct.
func TestNames(t *testing.T) {
	db := openTest(t, t.TempDir(), Options{})
	names := []string{"a", "a\x01", "a\x01b", "a b", "aa", "é", "\U0010ffff", strings.Repeat("n", 512)}
	for i, model := range names {
		for _, acc := range names {
			m := rowfiletest.Invented(i)
			m.Config.Model.Name, m.Config.Accelerator.Name = model, acc
			mustPut(t, db, m)
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

// TestReadErrors stores values under wrong row keys.
func TestReadErrors(t *testing.T) {
	good, err := encodeRecord(rowfiletest.Invented(0))
	if err != nil {
		t.Fatal(err)
	}
	for want, value := range map[string][]byte{
		"record version 9": []byte("\x09{}"),
		"version 2":        []byte("\x02{"),
		"the row is of":    good,
	} {
		db := openTest(t, t.TempDir(), Options{})
		if err := db.bdb.Update(func(txn *badger.Txn) error { return txn.Set(rowKey(rowfiletest.Invented(1)), value) }); err != nil {
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
		want[Tally{Model: m.Config.Model.Name, Accelerator: m.Config.Accelerator.Name, Source: m.Source, Outcome: m.Outcome}]++
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
		// Rows written during the iteration do not change it.
		m.Origin += " again"
		mustPut(t, db, m)
	}
	if n != 11 {
		t.Errorf("%d yields after the context ended at the tenth, want 11", n)
	}
	for range db.Query(context.Background(), Filter{}) {
		break
	}
	if err := db.Put(ctx, rowfiletest.Invented(99)); !errors.Is(err, context.Canceled) {
		t.Errorf("Put after the context ended: %v", err)
	}
}
