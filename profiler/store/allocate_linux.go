package store

import (
	"os"
	"syscall"
)

// allocate makes f at least size bytes long, all of them on the disk.
func allocate(f *os.File, size int64) error { return syscall.Fallocate(int(f.Fd()), 0, 0, size) }
