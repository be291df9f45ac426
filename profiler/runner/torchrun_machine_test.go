//go:build linux

package runner

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
)

// TestMicrobenchmarksMeasure measures every operation for real; a machine with two devices has collectives.
func TestMicrobenchmarksMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("imports torch in many processes")
	}
	r := withTorch(t, TorchrunOptions{Point: profiler.PointOptions{Timeout: 3 * time.Minute}})
	r.o.Machine.Accelerator = spec.Accelerator{Name: "CPU here, 1 thread", Arch: "AVX2", FP32: 50e9, MemBytes: 8e9, MemBps: 10e9}
	r.o.Machine.Framework = spec.FrameworkWorker
	b, err := r.Microbenchmarks(context.Background(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, row := range b.Rows {
		if !slices.Contains(ops, row.Op) {
			ops = append(ops, row.Op)
		}
		if len(row.Sec) < 5 {
			t.Errorf("%s: %v s, want five repetitions or more", row.Op, row.Sec)
		}
	}
	want := spec.MicrobenchmarkOps()
	if len(r.o.Machine.Devices) < 2 {
		t.Fatalf("%d devices, want two for collectives", len(r.o.Machine.Devices))
	}
	slices.Sort(ops)
	slices.Sort(want)
	if !slices.Equal(ops, want) || b.Env[profiler.EnvTorch] == "" {
		t.Errorf("measured %q, %v; want %q", ops, b.Env, want)
	}
	constants, err := analytic.MeasuredConstants(&b)
	if err != nil || len(constants) < 8 {
		t.Errorf("%d constants, %v", len(constants), err)
	}
}

// TestMicrobenchmarksFail: the error says what the worker said.
func TestMicrobenchmarksFail(t *testing.T) {
	for lines, want := range map[string]string{
		`echo "no room" >&2; exit 3`: `no result in result.json: exit status 3, last line "no room"`,
		`echo '{"version":1,"outcome":"oom","reason":"too big","rank":0}' >"$out.rank0"; exit 1`: "oom: too big",
		`echo '{"version":1,"rows":[]}' >"$out"`:                                                 "have no rows",
		`echo '{"version":9}' >"$out"`:                                                           "version 9, want 1",
		`echo '{' >"$out"`:                                                                       "unexpected end of JSON",
	} {
		python, _ := fakePython(t, lines)
		r := newTorchrun(t, TorchrunOptions{Python: python, Executor: executor.Local{}})
		r.o.Machine.Accelerator = spec.Accelerator{Name: "CPU here, 1 thread", FP32: 50e9, MemBytes: 8e9, MemBps: 10e9}
		r.o.Machine.Devices = r.o.Machine.Devices[:1]
		if _, err := r.Microbenchmarks(context.Background(), time.Second); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", lines, err, want)
		}
	}
}
