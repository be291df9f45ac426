//go:build darwin || dragonfly || freebsd || linux

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockHeld makes the engine skip its own lock, since the directory is locked already.
const lockHeld = true

// lockFile contains the id of the writing process. Only the flock on the directory counts, so a file that a
// killed process left does no harm.
const lockFile = "LOCK"

// noFollow makes opening a symbolic link an error.
const noFollow = syscall.O_NOFOLLOW

// dirLock is an flock on the store's directory, which ends with the process.
type dirLock struct {
	dir   *os.File
	owner string // lock file to remove, "" for a shared lock
}

func lockDir(dir string, shared bool) (*dirLock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	how, owner := syscall.LOCK_EX, filepath.Join(dir, lockFile)
	if shared {
		how, owner = syscall.LOCK_SH, ""
	}
	if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, lockedError(dir)
		}
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	if owner != "" {
		if err := writeOwner(owner); err != nil {
			f.Close()
			return nil, err
		}
	}
	return &dirLock{dir: f, owner: owner}, nil
}

// writeOwner writes the id of this process. A symbolic link is an error: following it would overwrite another file.
func writeOwner(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|noFollow, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	return errors.Join(err, f.Close())
}

func lockedError(dir string) error {
	e := &LockedError{Dir: dir}
	if b, err := os.ReadFile(filepath.Join(dir, lockFile)); err == nil {
		e.PID, _ = strconv.Atoi(strings.TrimSpace(string(b))) // 0 while the other process is writing it
	}
	return e
}

func (l *dirLock) release() error {
	var err error
	if l.owner != "" {
		err = os.Remove(l.owner)
	}
	return errors.Join(err, l.dir.Close())
}

// freeSpace returns the number of bytes that an unprivileged user can still write to the disk of dir.
func freeSpace(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
