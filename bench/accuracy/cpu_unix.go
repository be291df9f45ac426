//go:build unix

package accuracy

import "syscall"

// cpuSec returns the processor time of this process so far, in seconds.
func cpuSec() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0 // does not happen: both arguments are valid
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
