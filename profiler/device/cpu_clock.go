package device

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

// clocksWatched bounds how many CPUs' clocks are read.
const clocksWatched = 8

// clockFiles returns the files that hold the clocks of the first n CPUs, those
// of them that exist.
func clockFiles(root string, n int) []string {
	var out []string
	for i := range min(n, clocksWatched) {
		file := filepath.Join(root, "sys/devices/system/cpu", "cpu"+strconv.Itoa(i), "cpufreq/scaling_cur_freq")
		if readText(file) != "" {
			out = append(out, file)
		}
	}
	return out
}

// meanClock returns the mean of clocks in Hz, NaN without any.
func meanClock(files []string) float64 {
	sum, n := 0.0, 0
	for _, file := range files {
		if kHz, err := strconv.ParseFloat(strings.TrimSpace(readText(file)), 64); err == nil && kHz > 0 {
			sum, n = sum+kHz*1e3, n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// thermalEvents returns how often the first CPU or its package was slowed down
// for heat since the machine started, false where the kernel does not count
// (Intel's are counted).
func thermalEvents(root string) (n int, ok bool) {
	for _, name := range []string{"core_throttle_count", "package_throttle_count"} {
		text := readText(filepath.Join(root, "sys/devices/system/cpu/cpu0/thermal_throttle", name))
		if v, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
			n, ok = n+v, true
		}
	}
	return n, ok
}
