//go:build unix

package child

import (
	"os"
	"syscall"
)

// userSignals are those with which schedulers and users ask a training run for a checkpoint, as sbatch
// --signal=USR1@60 does.
var userSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}
