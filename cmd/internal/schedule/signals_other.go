//go:build !unix

package schedule

import (
	"os"
	"syscall"
)

// jobSignals are what users send to a task; Slurm needs Unix.
var jobSignals = []os.Signal{syscall.SIGTERM, syscall.SIGINT}
