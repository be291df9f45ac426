//go:build darwin || dragonfly || freebsd || linux

package tempdir

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// own makes this process the owner of a directory. The operating system releases the flock when the process
// ends for any reason. Child processes do not inherit it.
func own(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ownerFile+"-")
	if err != nil {
		return nil, err
	}
	switch err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
		err = os.Rename(f.Name(), filepath.Join(dir, ownerFile))
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOLCK): // a file system without locks: such a directory is never taken for abandoned
		err = os.Remove(f.Name())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// abandoned reports whether dir is a directory of this user with an owner that has ended.
func abandoned(dir string) bool {
	path := filepath.Join(dir, ownerFile)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return false
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
