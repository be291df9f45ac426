package query

import (
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// An accelerator is meant by its whole name or by whole words of it; a name
// several have words of means them all.
func TestMeant(t *testing.T) {
	one, four := "CPU Intel Xeon 2.6GHz AVX-512, 1 thread", "CPU Intel Xeon 2.6GHz AVX-512, 4 threads"
	names := []string{one, four, "TPU v5e"}
	for name, want := range map[string][]string{
		one:                                     {one},
		"cpu-intel-xeon-2.6ghz-avx512-1-thread": {one},
		"cpu":                                   {one, four},
		"intel xeon":                            {one, four},
		"4 threads":                             {four},
		"thread":                                {one},
		"V5E":                                   {"TPU v5e"},
		"v5":                                    nil, // no whole word
		"c":                                     nil,
		"":                                      nil,
		",":                                     nil,
		"xeon intel":                            nil,
		"h100":                                  nil,
	} {
		if got := Match(name, names); !slices.Equal(got, want) {
			t.Errorf("%q means %q, want %q", name, got, want)
		}
	}
}

// TestMeasuredAccelerator: a machine is known once its micro-benchmarks are stored, and one of the catalog comes with them.
func TestMeasuredAccelerator(t *testing.T) {
	db, reg := querytest.Open(t)
	r := &Resolver{Read: func(use func(reader.Store) error) error { return use(db) }, Fitted: reg}
	if _, _, err := r.FindAccelerator(t.Context(), "cpu"); err == nil {
		t.Error("an empty store knows a CPU")
	}
	_, h100 := querytest.Named(t, "gpt2-small", "h100")
	core := spec.Accelerator{Name: "CPU test, 1 thread", Arch: "AVX2", FP32: 1e11, MemBytes: 1e9, MemBps: 1e10}
	for _, a := range []spec.Accelerator{h100, core} {
		b := spec.Microbenchmarks{Accelerator: a, Rows: []spec.Microbenchmark{{Op: "copy", Bytes: 1e9, Sec: []float64{0.05}}}}
		if err := db.PutMicrobenchmarks(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"h100": h100.Name, "cpu": core.Name} {
		a, stored, err := r.FindAccelerator(t.Context(), name)
		if err != nil || a.Name != want || a.Measured == "" || stored != (name == "cpu") {
			t.Errorf("%s is %q, stored %v, measured %q, %v", name, a.Name, stored, a.Measured, err)
		}
	}
	text, err := r.MeasuredText(t.Context(), "H200")
	if err != nil || text != "" {
		t.Errorf("another accelerator has %q, %v", text, err)
	}
}
