//go:build !linux

package device

import "time"

// processorTime runs f and returns the elapsed time, in place of processor time.
func processorTime(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}
