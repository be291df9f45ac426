//go:build !linux

package device

import "time"

// processorTime runs f and returns the time it took.
func processorTime(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}
