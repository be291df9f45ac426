package device

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// CPU describes the processors of this machine, from /proc and /sys. Without those, most fields are absent.
type CPU struct {
	Model  string `json:"model,omitempty"`  // from /proc/cpuinfo
	Brand  string `json:"brand,omitempty"`  // Model without trade marks, clock and filler words
	Vendor string `json:"vendor,omitempty"` // such as "Intel"
	Arch   string `json:"arch"`             // GOARCH, such as "amd64"
	SIMD   string `json:"simd,omitempty"`   // widest vector instructions, such as "AVX-512"
	BF16   string `json:"bf16,omitempty"`   // instructions for bfloat16: "AMX", "AVX512_BF16" or none
	// ClockHz is the nominal clock rounded to 0.1 GHz, 0 if unknown.
	ClockHz float64 `json:"clock_hz,omitempty"`
	Sockets int     `json:"sockets"`
	Cores   int     `json:"cores"`
	Threads int     `json:"threads"` // hardware threads
	// UsableThreads is the number of threads that this process may use, given its affinity mask and the CPU
	// quota of its control group.
	UsableThreads int     `json:"usable_threads"`
	MemBytes      float64 `json:"mem_bytes,omitempty"` // memory of the machine, or the limit of the control group, if lower

	rates simdRates // per core and cycle
}

// Usable returns the number of cores that this process may use. It assumes that threads share cores evenly.
func (c CPU) Usable() int {
	if c.Threads <= 0 || c.UsableThreads >= c.Threads {
		return max(c.Cores, 1)
	}
	return max(1, c.UsableThreads*c.Cores/c.Threads)
}

// thisCPU reads the CPU of this machine.
func thisCPU() CPU {
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	c := parseCPU(string(cpuinfo), maxFrequency("/sys"), runtime.GOARCH)
	c.MemBytes = UsableMemory()
	if c.Threads == 0 {
		c.Sockets, c.Cores, c.Threads = 1, runtime.NumCPU(), runtime.NumCPU()
	}
	c.UsableThreads = min(runtime.NumCPU(), c.Threads)
	if quota, ok := ownControlGroup("/").cpus(); ok {
		c.UsableThreads = max(1, min(c.UsableThreads, int(math.Ceil(quota))))
	}
	return c
}

// UsableMemory returns the bytes of memory that this process may use: the machine's memory or the limit of its
// control group, whichever is lower. 0 means unknown.
func UsableMemory() float64 {
	bytes := totalMemory("/")
	if limit, ok := ownControlGroup("/").memory(); ok && bytes > 0 {
		bytes = min(bytes, limit)
	}
	return bytes
}

// maxFrequency returns the highest clock of the first processor in Hz by cpufreq, 0 if unknown.
func maxFrequency(sys string) float64 {
	text, err := os.ReadFile(filepath.Join(sys, "devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"))
	if err != nil {
		return 0
	}
	kHz, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil || !(kHz > 0) || math.IsInf(kHz, 0) {
		return 0
	}
	return kHz * 1e3
}

// totalMemory returns the bytes of memory by /proc/meminfo, 0 if it cannot be read.
func totalMemory(root string) float64 {
	fs, err := procfs.FS(root)
	if err != nil {
		return 0
	}
	m, err := fs.Meminfo()
	if err != nil || m.MemTotalBytes == nil {
		return 0
	}
	return float64(*m.MemTotalBytes)
}
