package device

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func sample(t testing.TB, name string) string {
	t.Helper()
	text := spectest.ReadFile(t, filepath.Join("testdata/cpuinfo", name+".txt"))
	return string(text)
}

func TestCPUs(t *testing.T) {
	for _, tc := range []struct {
		file                    string
		maxHz                   float64
		accelerator, vendor     string // of one thread
		sockets, cores, threads int
		fp32, bf16              float64 // GFLOP/s
	}{
		{"xeon-gold-6248", 0, "CPU Intel Xeon Gold 6248 2.5GHz AVX-512, 1 thread", "Intel", 2, 4, 8, 160, 0},
		{"xeon-silver-4110", 0, "CPU Intel Xeon Silver 4110 2.1GHz AVX-512, 1 thread", "Intel", 1, 2, 2, 67.2, 0},
		{"xeon-cloud", 0, "CPU Intel Xeon 2.6GHz AVX-512, 1 thread", "Intel", 1, 2, 2, 166.4, 2662.4},
		{"core-i7-4770", 0, "CPU Intel Core i7-4770 3.4GHz AVX2, 1 thread", "Intel", 1, 4, 8, 108.8, 0},
		{"core-i5-2400", 0, "CPU Intel Core i5-2400 3.1GHz AVX, 1 thread", "Intel", 1, 4, 4, 49.6, 0},
		{"epyc-7763", 0, "CPU AMD EPYC 7763 2.4GHz AVX2, 1 thread", "AMD", 1, 2, 4, 76.8, 0},
		{"epyc-9654", 0, "CPU AMD EPYC 9654 2.4GHz AVX-512, 1 thread", "AMD", 1, 2, 2, 76.8, 153.6},
		{"epyc-9755", 0, "CPU AMD EPYC 9755 2.7GHz AVX-512, 1 thread", "AMD", 1, 2, 2, 172.8, 345.6},
		{"ryzen-1700", 0, "CPU AMD Ryzen 7 1700 3.0GHz AVX2, 1 thread", "AMD", 1, 2, 2, 48, 0},
		{"opteron", 0, "CPU AMD Opteron 246 2.0GHz SSE, 1 thread", "AMD", 1, 1, 1, 16, 0},
		{"neoverse-n1", 0, "CPU Arm Neoverse-N1 NEON, 1 thread", "Arm", 1, 4, 4, 0, 0},
		{"neoverse-n1", 3e9, "CPU Arm Neoverse-N1 3.0GHz NEON, 1 thread", "Arm", 1, 4, 4, 48, 0},
		{"neoverse-v2", 3.4e9, "CPU Arm Neoverse-V2 3.4GHz SVE, 1 thread", "Arm", 1, 2, 2, 108.8, 0},
		{"arm-unknown", 2.8e9, "CPU Ampere part 0xac3 2.8GHz NEON, 1 thread", "Ampere", 1, 2, 2, 44.8, 0},
	} {
		c := parseCPU(sample(t, tc.file), tc.maxHz, "any")
		a := c.Accelerator(1)
		if a.Name != tc.accelerator || !a.IsCPU() || c.Vendor != tc.vendor || a.Vendor != tc.vendor {
			t.Errorf("%s: %q of %q, want %q of %q", tc.file, a.Name, c.Vendor, tc.accelerator, tc.vendor)
		}
		if c.Sockets != tc.sockets || c.Cores != tc.cores || c.Threads != tc.threads {
			t.Errorf("%s: %d sockets, %d cores, %d threads, want %d, %d, %d", tc.file, c.Sockets, c.Cores, c.Threads, tc.sockets, tc.cores, tc.threads)
		}
		if !cmp.Equal([]float64{a.FP32 / 1e9, a.BF16 / 1e9}, []float64{tc.fp32, tc.bf16}, approx) {
			t.Errorf("%s: %g, %g GFLOP/s, want %g, %g", tc.file, a.FP32/1e9, a.BF16/1e9, tc.fp32, tc.bf16)
		}
		if b := c.Accelerator(4); !cmp.Equal(b.FP32, 4*a.FP32, approx) || !strings.HasSuffix(b.Name, ", 4 threads") || b.MemBps != 4*a.MemBps {
			t.Errorf("%s: with 4 threads %+v", tc.file, b)
		}
	}
}

var approx = cmp.Comparer(func(a, b float64) bool { return a == b || a-b < 1e-9*a && b-a < 1e-9*a })

// TestNameIsStable: the name does not depend on the current clock or the order of the processors.
func TestNameIsStable(t *testing.T) {
	text := sample(t, "epyc-7763")
	want := parseCPU(text, 0, "amd64").Accelerator(1).Name
	for _, mhz := range []string{"1500.000", "3675.114"} {
		other := strings.ReplaceAll(text, "3243.200", mhz)
		if got := parseCPU(other, 0, "amd64").Accelerator(1).Name; got != want || other == text {
			t.Errorf("at %s MHz: %q, want %q", mhz, got, want)
		}
	}
	blocks := strings.Split(strings.TrimSpace(text), "\n\n")
	slices.Reverse(blocks)
	if got := parseCPU(strings.Join(blocks, "\n\n"), 0, "amd64").Accelerator(1).Name; got != want {
		t.Errorf("in another order: %q, want %q", got, want)
	}
}

// FuzzParseCPU: damaged or unrelated text gives no rates and no invalid values.
func FuzzParseCPU(f *testing.F) {
	files, _ := filepath.Glob("testdata/cpuinfo/*.txt")
	for _, file := range files {
		text := spectest.ReadFile(f, file)
		f.Add(string(text))
	}
	f.Add("")
	f.Add("processor: 0\nmodel name: @ 9999999999999999999999999999999999999GHz\nflags: constant_tsc\nbogomips: NaN\ncpu MHz: -1\n")
	f.Fuzz(func(t *testing.T, text string) {
		c := parseCPU(text, 0, "amd64")
		a := c.Accelerator(1)
		if c.Threads < 0 || c.Cores > c.Threads || c.Sockets > c.Threads || !(c.ClockHz >= 0) || !(a.FP32 >= 0) || a.Name == "" {
			t.Errorf("%+v, %+v", c, a)
		}
		if c.Usable() < 1 {
			t.Errorf("%d usable cores", c.Usable())
		}
	})
}

func TestMemTotal(t *testing.T) {
	for text, want := range map[string]float64{
		"MemTotal:       24684084 kB\nMemFree: 1 kB\n": 24684084 * 1024, "MemFree: 7 kB\n": 0, "MemTotal: lots kB\n": 0, "": 0, "MemTotal: 5 MB\n": 0,
	} {
		root := t.TempDir()
		writeFile(t, filepath.Join(root, "proc/meminfo"), text)
		if got := totalMemory(root); got != want {
			t.Errorf("%q: %g bytes, want %g", text, got, want)
		}
	}
	if got := totalMemory(t.TempDir()); got != 0 {
		t.Errorf("without /proc: %g bytes, want 0", got)
	}
}

func TestControlGroup(t *testing.T) {
	root := t.TempDir()
	if _, ok := ownControlGroup(root).cpus(); ok {
		t.Error("a quota where there are no control groups")
	}
	writeSelf(t, root, "1:cpu:/old\n0::/a/b\n")
	writeFile(t, filepath.Join(root, "sys/fs/cgroup/a/cpu.max"), "150000 100000\n")
	writeFile(t, filepath.Join(root, "sys/fs/cgroup/a/b/cpu.max"), "max 100000\n")
	writeFile(t, filepath.Join(root, "sys/fs/cgroup/a/b/memory.max"), "max\n")
	writeFile(t, filepath.Join(root, "sys/fs/cgroup/a/memory.max"), "1073741824\n")
	writeFile(t, filepath.Join(root, "sys/fs/cgroup/a/cpu.stat"), "usage_usec 5\nnr_throttled 2\nthrottled_usec 2500000\n")
	g := ownControlGroup(root)
	cpus, ok1 := g.cpus()
	memory, ok2 := g.memory()
	held, ok3 := g.throttled()
	if !ok1 || !ok2 || !ok3 || cpus != 1.5 || memory != 1<<30 || held.Seconds() != 2.5 {
		t.Errorf("%g CPUs (%v), %g bytes (%v), %s (%v)", cpus, ok1, memory, ok2, held, ok3)
	}
}

func TestUsableCores(t *testing.T) {
	for _, tc := range []struct{ cores, threads, usable, want int }{
		{4, 8, 8, 4}, {4, 8, 4, 2}, {4, 8, 1, 1}, {2, 2, 2, 2}, {2, 2, 1, 1}, {0, 0, 0, 1}, {64, 128, 6, 3},
	} {
		if got := (CPU{Cores: tc.cores, Threads: tc.threads, UsableThreads: tc.usable}).Usable(); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}
