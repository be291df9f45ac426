package store

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

var freeze = flag.Bool("freeze", false, "write testdata/format1.tar.gz anew")

const (
	frozenFile = "testdata/format1.tar.gz"
	frozenRows = 600
)

// frozen returns the i-th row of the frozen store. It must not change.
func frozen(i int) spec.Measurement {
	m := spec.Measurement{
		Config: spec.Config{
			Model: spec.Model{Name: fmt.Sprintf("paper-%d", i%4), Kind: spec.Encoder, Layers: 2 + i%4, Hidden: 32, FFN: 128, Heads: 2,
				Vocab: 500, SeqLen: 64, ParamCount: 1e5},
			SeqLen: 32 * (i % 2),
			Plan: spec.Plan{DP: 1 << (i % 3), TP: 1, PP: 1, MicroBatch: 1 + i%5, AccumSteps: 1, ZeRO: i % 3,
				Recompute: spec.RecomputeFull, Precision: spec.FP16}.Normal(),
			Accelerator: spec.Accelerator{Name: "Y" + fmt.Sprint(i%2), FP16: 5e13, MemBytes: 1 << 33, MemBps: 5e11},
			Shape:       spec.Shape{Devices: fmt.Sprint(1 << (i % 3)), CPUs: 8},
			Link:        spec.Link{InterBps: 1e9},
			Framework:   "loop",
		},
		Outcome:   spec.OK,
		StepSec:   []float64{float64(250+i) / 1000, float64(251+i) / 1000},
		PhaseSec:  map[string]float64{"forward": float64(80+i) / 1000},
		PeakBytes: 1e9 + float64(i),
		Source:    "frozen",
		Origin:    fmt.Sprintf("sheet:%d", i),
		Env:       map[string]string{"release": "0.1"},
	}
	switch i % 10 {
	case 3:
		m.Doubt = "half the batch"
	case 7:
		m.Outcome, m.Reason, m.StepSec, m.PhaseSec = spec.Failed, "link down", nil, nil
	case 9:
		m.At = time.Date(2023, 1, 2, 3, 4, 5, i, time.UTC)
	}
	return m
}

// frozenWant returns the first n rows of the frozen store, in the order of a query.
func frozenWant(n int) []spec.Measurement {
	want := make([]spec.Measurement, n)
	for i := range want {
		want[i] = frozen(i)
	}
	slices.SortFunc(want, func(a, b spec.Measurement) int { return strings.Compare(string(rowKey(a)), string(rowKey(b))) })
	return want
}

// encodeRecord1 encodes a row in format 1.
func encodeRecord1(m spec.Measurement) ([]byte, error) {
	c := m.Config
	r := record1{Model: c.Model, Accelerator: c.Accelerator, Link: c.Link, SeqLen: c.SeqLen, Plan: c.Plan.String(),
		Devices: c.Shape.Devices, CPUs: c.Shape.CPUs, HostBytes: c.Shape.HostBytes, Framework: c.Framework,
		Outcome: m.Outcome, Note: m.Reason + m.Doubt, PeakBytes: m.PeakBytes, Source: m.Source, Origin: m.Origin, Env: m.Env}
	for _, s := range m.StepSec {
		r.StepMs = append(r.StepMs, float64(int(s*1000+0.5)))
	}
	for phase, s := range m.PhaseSec {
		r.PhaseMs = map[string]float64{phase: float64(int(s*1000 + 0.5))}
	}
	if !m.At.IsZero() {
		r.AtUnixNano = m.At.UnixNano()
	}
	j, err := json.Marshal(r)
	return append([]byte{1}, j...), err
}

// writeFormat1 creates a store of format 1 in dir and closes it properly.
func writeFormat1(t *testing.T, dir string) {
	t.Helper()
	bdb, err := openEngine(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range frozenRows {
		m := frozen(i)
		v, err := encodeRecord1(m)
		if err != nil {
			t.Fatal(err)
		}
		id := identity(m)
		err = bdb.Update(func(txn *badger.Txn) error { return txn.Set(append([]byte{rowPrefix1}, id[:]...), v) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(bdb.Close(), writeVersion(dir, 1), writeSeal(dir)); err != nil {
		t.Fatal(err)
	}
}

// TestFreeze writes the frozen store with -freeze.
func TestFreeze(t *testing.T) {
	if !*freeze {
		t.Skip("only with -freeze")
	}
	dir := t.TempDir()
	writeFormat1(t, dir)
	f, err := os.Create(frozenFile)
	if err != nil {
		t.Fatal(err)
	}
	gz, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(gz)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), gz.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// thaw unpacks a frozen store.
func thaw(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if err == io.EOF {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		b, err := io.ReadAll(r)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestMigrate(t *testing.T) {
	want := frozenWant(frozenRows)
	for _, o := range []Options{{}, {ReadOnly: true}} {
		t.Run(fmt.Sprintf("readonly=%v", o.ReadOnly), func(t *testing.T) {
			dir := thaw(t, frozenFile)
			for range 2 { // the first opening migrates, the second does not
				db := mustOpen(t, dir, o)
				if d := cmp.Diff(want, collect(t, db, Filter{})); d != "" {
					t.Fatal(d)
				}
				if err := migrate(db.bdb, func(int) { t.Error("a migrated store was migrated again") }); err != nil {
					t.Error(err)
				}
				mustClose(t, db)
			}
			db := openTest(t, dir, Options{})
			c, err := db.PutAll(context.Background(), frozen(0), frozen(7), frozen(9))
			if err != nil || c != (Counts{Unchanged: 3}) {
				t.Errorf("importing the same rows again: %+v, %v, want 3 unchanged", c, err)
			}
			if v, err := readVersion(dir); v != FormatVersion || err != nil {
				t.Errorf("VERSION names format %d, %v", v, err)
			}
		})
	}
}

// migrateUntilKilled kills its own process after the first batch of rows.
func migrateUntilKilled(dir string) error {
	lock, err := lockDir(dir, false)
	if err != nil {
		return err
	}
	defer func() { _ = lock.release() }()
	st, err := inspect(dir)
	if err != nil {
		return err
	}
	if err := st.prepare(dir); err != nil {
		return err
	}
	bdb, err := openEngine(dir, Options{})
	if err != nil {
		return err
	}
	return migrate(bdb, func(rows int) {
		fmt.Println(rows)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	})
}

func TestMigrateKilled(t *testing.T) {
	dir := thaw(t, frozenFile)
	for round := range 3 { // 256, 256 and 88 rows
		cmd, out, _ := helper(t, "migrate", dir)
		if !out.Scan() || out.Text() == "0" {
			t.Fatalf("round %d: %q, want some rows moved", round, out.Text())
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("migration ended by itself: %v", err)
		}
		crashed := copyDir(t, dir)
		db := mustOpen(t, crashed, Options{})
		if d := cmp.Diff(frozenWant(frozenRows), collect(t, db, Filter{})); d != "" {
			t.Fatal(d)
		}
		mustClose(t, db)
	}
}

func TestNewer(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, Options{})
	if err == nil {
		err = errors.Join(db.Close(), writeVersion(dir, FormatVersion+1))
	}
	if err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	for _, o := range []Options{{}, {ReadOnly: true}} {
		if _, err := Open(dir, o); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), fmt.Sprint("format ", FormatVersion+1)) {
			t.Errorf("got %v, want ErrNewer with directory and format", err)
		}
		if !reflect.DeepEqual(before, snapshot(t, dir)) {
			t.Error("opening changed files")
		}
	}
}

// TestFrozenRecord checks that records of this version stay readable. The bytes are a value of format 2 as
// first released.
func TestFrozenRecord(t *testing.T) {
	b := spectest.ReadFile(t, "testdata/record2.json")
	b = append([]byte{2}, strings.TrimSpace(string(b))...)
	got, err := decodeRecord(b)
	if err != nil {
		t.Fatal(err)
	}
	again, err := encodeRecord(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != string(again) {
		t.Errorf("a field was renamed or lost:\nstored %s\nread   %s", b[1:], again[1:])
	}
	if id := identity(got); fmt.Sprintf("%x", id) != "bea0347a0289e460d0eaef7ac315963a" {
		t.Errorf("the identity of a row changed to %x: stored rows would be doubled", id)
	}
}

func TestRecordErrors(t *testing.T) {
	for _, b := range []string{"", "\x00{}", "\x03{}", "\x02", "\x02{", "\x02[]", "\x01{}", "\x01{\"plan\":\"dp=x\"}"} {
		if m, err := decodeRecord([]byte(b)); err == nil {
			t.Errorf("%q was read as %+v", b, m)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for i := range 10 {
		b1, err := encodeRecord1(frozen(i))
		if err != nil {
			f.Fatal(err)
		}
		b2, err := encodeRecord(rowfiletest.Invented(i))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b1)
		f.Add(b2)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeRecord(b)
		if err != nil {
			return
		}
		again, err := encodeRecord(m)
		if err != nil {
			return // such as a time past the year 9999
		}
		if m2, err := decodeRecord(again); err != nil || !cmp.Equal(m, m2) {
			t.Fatalf("%+v came back as %+v, %v", m, m2, err)
		}
	})
}
