//go:build darwin || dragonfly || freebsd || linux

package schedule

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks a file until it is closed. held says that another process has it locked.
func lockFile(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
