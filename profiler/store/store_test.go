package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// invented returns the i-th of a list of measurements nobody took.
func invented(i int) spec.Measurement {
	m := spec.Measurement{
		Config: spec.Config{
			Model: spec.Model{Name: fmt.Sprintf("tiny-%d", i%3), Kind: spec.Decoder, Layers: 4, Hidden: 64, FFN: 256, Heads: 4,
				KVHeads: 2, Vocab: 1000, SeqLen: 128, GatedMLP: true, ParamCount: 1.25e6},
			Plan:        spec.Plan{DP: 1 + i%2, TP: 2, PP: 1, MicroBatch: 1 + i%4, AccumSteps: 2, ZeRO: 1, Recompute: spec.RecomputeFull, Precision: spec.BF16},
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

func TestPutQuery(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	start := time.Now()
	db := openTest(t, dir, Options{})
	t.Log("open", time.Since(start))
	c, err := db.PutAll(ctx, inventedRows(100)...)
	if err != nil || c != (Counts{Added: 100}) {
		t.Fatal(c, err)
	}
	c, err = db.PutAll(ctx, inventedRows(100)...)
	if err != nil || c != (Counts{Unchanged: 100}) {
		t.Fatal(c, err)
	}
	start = time.Now()
	db.Close()
	t.Log("close", time.Since(start))
	start = time.Now()
	db = openTest(t, dir, Options{ReadOnly: true})
	t.Log("ro open", time.Since(start))
	got := collect(t, db, Filter{})
	if len(got) != 100 {
		t.Fatal(len(got))
	}
	s, err := db.Summary(ctx)
	t.Log(len(s), err)
	got = collect(t, db, Filter{Models: []string{"tiny-1"}, Sources: []string{"invented/2"}})
	for _, m := range got {
		if m.Config.Model.Name != "tiny-1" || m.Source != "invented/2" {
			t.Error(m)
		}
	}
	if d := cmp.Diff(invented(7), got[0]); d != "" {
		t.Log(d)
	}
	start = time.Now()
	db.Close()
	t.Log("ro close", time.Since(start))
}
