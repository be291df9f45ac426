//go:build !unix

package accuracy

import "time"

var started = time.Now()

// cpuSec returns the time since the program started, in seconds: an upper bound of its processor time on one processor.
func cpuSec() float64 { return time.Since(started).Seconds() }
