package device

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// CPU is the processors of this machine, as /proc and /sys tell. Where neither
// exists most of it is absent.
type CPU struct {
	Model  string `json:"model,omitempty"`  // as /proc/cpuinfo says
	Brand  string `json:"brand,omitempty"`  // Model without marks, clock and filler words
	Vendor string `json:"vendor,omitempty"` // such as "Intel"
	Arch   string `json:"arch"`             // as Go names it, such as "amd64"
	SIMD   string `json:"simd,omitempty"`   // widest vector instructions, such as "AVX-512"
	BF16   string `json:"bf16,omitempty"`   // instructions for bfloat16: "AMX", "AVX512_BF16" or none
	// ClockHz is the nominal clock to 0.1 GHz, 0 where nothing tells it.
	ClockHz float64 `json:"clock_hz,omitempty"`
	Sockets int     `json:"sockets"`
	Cores   int     `json:"cores"`
	Threads int     `json:"threads"` // hardware threads
	// UsableThreads is how many of them this process may use: the affinity
	// mask and the CPU quota of its control group count.
	UsableThreads int     `json:"usable_threads"`
	MemBytes      float64 `json:"mem_bytes,omitempty"` // or the limit of the control group, if lower

	rates simdRates // per core and cycle
}

// Usable returns how many cores this process may use: the threads it may use
// are taken to share cores as those of the whole machine do.
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

// UsableMemory returns how many bytes of memory this process may use: those of
// the machine, or of its control group where that allows less; 0 where the
// machine does not tell.
func UsableMemory() float64 {
	meminfo, _ := os.ReadFile("/proc/meminfo")
	bytes := parseMemTotal(string(meminfo))
	if limit, ok := ownControlGroup("/").memory(); ok && bytes > 0 {
		bytes = min(bytes, limit)
	}
	return bytes
}

// maxFrequency returns the highest clock of the first processor in Hz by
// cpufreq, 0 where the kernel does not tell.
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

// parseMemTotal returns the memory in bytes by /proc/meminfo, 0 if it is not there.
func parseMemTotal(meminfo string) float64 {
	for line := range strings.Lines(meminfo) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			kB, _ := strconv.ParseUint(f[1], 10, 53)
			return float64(kB) * 1024
		}
	}
	return 0
}
