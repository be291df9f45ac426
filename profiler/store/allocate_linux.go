package store

import (
	"errors"
	"os"
	"syscall"
)

// allocate makes f at least size bytes long, all of them on the disk.
func allocate(f *os.File, size int64) error { return syscall.Fallocate(int(f.Fd()), 0, 0, size) }

// allocateFile gives the holes of a file their space, on file systems that can.
func allocateFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|noFollow, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() > 0 {
		err = allocate(f, info.Size())
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
