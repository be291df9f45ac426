package device

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

// clocksWatched is the maximum number of CPUs to read the clocks of.
const clocksWatched = 8

// clockFiles returns the existing clock files of the first n CPUs.
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

// meanClock returns the mean of the clocks in Hz, NaN if there are none.
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

// thermalEvents returns the number of times the first CPU or its package was throttled for heat since boot. It
// returns false if the kernel does not count them; it does on Intel.
func thermalEvents(root string) (n int, ok bool) {
	for _, name := range []string{"core_throttle_count", "package_throttle_count"} {
		text := readText(filepath.Join(root, "sys/devices/system/cpu/cpu0/thermal_throttle", name))
		if v, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
			n, ok = n+v, true
		}
	}
	return n, ok
}
