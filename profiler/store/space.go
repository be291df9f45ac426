package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// reserveFile holds disk space while a store with Options.Reserve is open, so that the engine can still write what it
// has in memory after other programs have filled the disk. It exists after a crash too; Open deletes it first.
const reserveFile = "RESERVE"

// checkSpace returns an error unless the disk has room for need bytes and minFreeSpace. Writes begin with it: a store
// on a full disk can be read, and can be written again once there is space.
func checkSpace(dir string, need int) error {
	free, err := freeSpace(dir)
	if err != nil {
		return fmt.Errorf("free space of %s: %w", dir, err)
	}
	if want := uint64(minFreeSpace + need); free < want && free != math.MaxUint64 {
		return fmt.Errorf("%s: %d MiB free on its disk, want at least %d: %w", dir, free>>20, want>>20, ErrNoSpace)
	}
	return nil
}

// spaceFactor bounds the disk space that rows take, in their size: in a log, in a table, and in the table that a
// compaction makes of it.
const spaceFactor = 4

// reserve allocates the space of the reserve file, if the disk has as much besides.
func (db *DB) reserve() error {
	if db.opt.Reserve <= 0 || checkSpace(db.dir, int(db.opt.Reserve)) != nil {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(db.dir, reserveFile), os.O_WRONLY|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(allocate(f, db.opt.Reserve), f.Close())
	if errors.Is(err, errors.ErrUnsupported) { // a file system without the call
		return unreserve(db.dir)
	}
	return err
}

// unreserve gives the space of the reserve file back.
func unreserve(dir string) error {
	if err := os.Remove(filepath.Join(dir, reserveFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// CheckSpace returns an error that wraps ErrNoSpace while the store refuses rows because its disk is nearly full. It
// gives back the reserved space then, and reserves it anew once there is space.
func (db *DB) CheckSpace() error {
	if err := db.use(); err != nil {
		return err
	}
	defer db.done()
	err := checkSpace(db.dir, 0)
	if db.opt.Reserve <= 0 || db.opt.ReadOnly {
		return err
	}
	if err != nil {
		return errors.Join(fmt.Errorf("store: %w", err), unreserve(db.dir))
	}
	if _, missing := os.Lstat(filepath.Join(db.dir, reserveFile)); missing != nil {
		return db.reserve()
	}
	return nil
}
