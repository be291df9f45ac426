//go:build unix

package schedule

import (
	"os"
	"syscall"
)

// jobSignals are what Slurm and users send to all processes of a task.
var jobSignals = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT}
