package hostspeed

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

const file = `model,gpus,cpus_per_gpu,mem_gb_per_gpu,relative_throughput
m,1,1,50,0.4
m,1,3,50,1
m,1,9,50,2.5
m,1,1,100,0.6
m,1,3,100,1.2
m,1,9,100,0
m,4,3,50,1
m,4,3,50,7
`

func table(t *testing.T) *Table {
	t.Helper()
	out, err := Read(strings.NewReader(file), "speeds.csv")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Speeds are linear between points and constant beyond them; of two rows of a point the first
// holds. A speed of 0 is no point: 9 CPUs with 100 GB are as fast as with 50 GB.
func TestRelative(t *testing.T) {
	tb := table(t)
	for _, c := range []struct {
		devices       int
		cpus, gb, out float64
	}{
		{1, 1, 50, 0.4}, {1, 0.5, 50, 0.4}, {1, 2, 50, 0.7}, {1, 6, 50, 1.75}, {1, 9, 50, 2.5}, {1, 90, 50, 2.5},
		{1, 1, 75, 0.5}, {1, 1, 200, 0.6}, {1, 1, 10, 0.4}, {1, 3, 100, 1.2}, {1, 9, 100, 2.5}, {1, 6, 100, 1.85}, {1, 9, 75, 2.5},
		{2, 9, 50, 2.5}, {3, 9, 50, 2.5}, {4, 9, 50, 1}, {8, 9, 50, 1},
	} {
		got, ok := tb.Relative(&spec.Job{Model: spec.Model{Name: "m"}}, c.devices, spec.Host{MilliCPUs: int64(1000 * c.cpus), Bytes: int64(1e9 * c.gb)})
		if !ok || math.Abs(got-c.out) > 1e-12 {
			t.Errorf("%d devices, %g CPUs, %g GB: %g %v, want %g", c.devices, c.cpus, c.gb, got, ok, c.out)
		}
	}
	if _, ok := tb.Relative(&spec.Job{Model: spec.Model{Name: "other"}}, 1, spec.Host{}); ok {
		t.Error("a model that is not in the file has a speed")
	}
}

func TestReadErrors(t *testing.T) {
	header, _, _ := strings.Cut(file, "\n")
	for in, want := range map[string]string{
		"":                       "speeds.csv: no header",
		"model,gpus\n":           `no column "cpus_per_gpu"`,
		header + "\n":            "speeds.csv has no speeds",
		header + "\nm,0,1,1,1\n": `speeds.csv:2: gpus "0", want a whole number of at least 1`,
		header + "\nm,1,x,1,1\n": `speeds.csv:2: cpus_per_gpu "x", want a number of at least 0`,
		header + "\nm,1,1,1,-1":  `speeds.csv:2: relative_throughput "-1"`,
		header + "\nm,1,1,1":     "wrong number of fields",
		header + "\n,1,1,1,1\n":  "speeds.csv:2: model is empty",
	} {
		if _, err := Read(strings.NewReader(in), "speeds.csv"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

// A job runs at the speed of its host, of the slowest of several, and of the proportional share
// without a grant of CPUs.
func TestTruth(t *testing.T) {
	truth := Truth{sim.Durations{}, table(t)}
	group := &spec.NodeGroup{Count: 2, Devices: 4, CPUs: 24, HostBytes: 200e9}
	j := &spec.Job{ID: "a", Model: spec.Model{Name: "m"}, Devices: 2, Duration: 100 * time.Second}
	for _, c := range []struct {
		slots []scheduler.Slot
		want  float64
	}{
		{[]scheduler.Slot{{Devices: 2, Host: spec.Host{MilliCPUs: 2000, Bytes: 100e9}}}, 0.4},
		{[]scheduler.Slot{{Devices: 1, Host: spec.Host{MilliCPUs: 9000}}, {Node: 1, Devices: 1, Host: spec.Host{MilliCPUs: 3000}}}, 1},
		{[]scheduler.Slot{{Devices: 2}}, 1.75},
	} {
		got, err := truth.StepsPerSec(t.Context(), j, &scheduler.Grant{Job: "a", Slots: c.slots}, group)
		if err != nil || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %g %v, want %g", c.slots, got, err, c.want)
		}
	}
	j.Model.Name = "other"
	if got, err := truth.StepsPerSec(t.Context(), j, &scheduler.Grant{Job: "a", Slots: []scheduler.Slot{{Devices: 2}}}, group); got != 1 || err != nil {
		t.Errorf("a model without speeds runs at %g %v, want 1", got, err)
	}
}

// The profiles that Blox kept of Synergy can be read, and their models are as fast with the
// proportional share, 3 CPUs and 62.5 GB, as recorded; but m5, which needs more memory.
func TestSharedProfiles(t *testing.T) {
	f, err := os.Open(filepath.Join(spectest.Shared(t), "data", "blox", "model_cpu_mem_throughput.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tb, err := Read(f, "model_cpu_mem_throughput.csv")
	if err != nil {
		t.Fatal(err)
	}
	for model := range tb.models {
		for _, n := range []int{1, 2, 4} {
			if v, ok := tb.Relative(&spec.Job{Model: spec.Model{Name: model}}, n, spec.Host{MilliCPUs: 3000, Bytes: 62.5e9}); model != "m5" && (!ok || v != 1) {
				t.Errorf("%s on %d devices runs at %g with the proportional share", model, n, v)
			}
		}
	}
	if len(tb.models) < 10 {
		t.Errorf("%d models, want at least 10", len(tb.models))
	}
}

// A speed does not fall with more CPUs or memory, whatever was measured and what was not.
func TestRelativeRises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := "model,gpus,cpus_per_gpu,mem_gb_per_gpu,relative_throughput\nm,1,1,1,1\n"
		for range rapid.IntRange(0, 12).Draw(t, "rows") {
			text += fmt.Sprintf("m,1,%d,%d,%d\n", rapid.IntRange(1, 6).Draw(t, "CPUs"), rapid.IntRange(1, 4).Draw(t, "GB"), rapid.IntRange(0, 9).Draw(t, "speed"))
		}
		tb, err := Read(strings.NewReader(text), "speeds.csv")
		if err != nil {
			t.Fatal(err)
		}
		at := func(milliCPUs, bytes int64) float64 {
			v, _ := tb.Relative(&spec.Job{Model: spec.Model{Name: "m"}}, 1, spec.Host{MilliCPUs: milliCPUs, Bytes: bytes})
			return v
		}
		for cpus := int64(0); cpus <= 7000; cpus += 500 {
			for bytes := int64(0); bytes <= 5e9; bytes += 5e8 {
				v := at(cpus, bytes)
				if more := min(at(cpus+500, bytes), at(cpus, bytes+5e8)); more < v-1e-9 {
					t.Fatalf("%g with %d thousandths of a CPU and %d bytes, %g with more, of\n%s", v, cpus, bytes, more, text)
				}
			}
		}
	})
}
