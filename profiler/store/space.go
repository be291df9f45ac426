package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// reserveFile holds disk space while a store with Options.Reserve is open, so that the engine can still write what it
// has in memory after other programs have filled the disk. It exists after a crash too; Open deletes it first.
const reserveFile = "RESERVE"

// The engine writes through memory maps of files, and a write for which the disk has no room ends the program. So a write
// needs minFreeSpace for the logs and tables that it may cause, and on a disk with less than tightSpace it waits until the
// tables are written (settle). What remains is other programs that take much of minFreeSpace during one write: 128 MiB are
// tested. Recovery needs openSpace, which the reserve of a server that was killed gives.
const (
	openSpace    = 64 << 20 // bytes
	minFreeSpace = 384 << 20
	tightSpace   = 4 * minFreeSpace
	settleMax    = 10 * time.Second
)

// checkSpace returns an error unless the disk has want bytes. Writes begin with it: a store on a full disk can be read,
// and can be written again once there is space.
func checkSpace(dir string, want int) error {
	free, err := freeSpace(dir)
	if err != nil {
		return fmt.Errorf("free space of %s: %w", dir, err)
	}
	if free < uint64(want) && free != math.MaxUint64 {
		return fmt.Errorf("%s: %d MiB free on its disk, want at least %d: %w", dir, free>>20, want>>20, ErrNoSpace)
	}
	return nil
}

// spaceFactor bounds the disk space that rows take, in their size: in a log, in a table, and in the table that a
// compaction makes of it.
const spaceFactor = 4

// reserve allocates the space of the reserve file, if the disk has as much besides.
func (db *DB) reserve() error {
	if db.opt.Reserve <= 0 || checkSpace(db.dir, minFreeSpace+int(db.opt.Reserve)) != nil {
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

// settle waits, on a disk with little space, for the tables that a write has caused.
func (db *DB) settle() error {
	for end := time.Now().Add(settleMax); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if free, err := freeSpace(db.dir); err != nil || free >= tightSpace {
			return err
		}
		logs, err := filepath.Glob(filepath.Join(db.dir, "*.mem"))
		if err != nil || len(logs) < 2 && !compacting(db.bdb.Levels()) {
			return err
		}
	}
	return nil
}

// compacting reports whether the engine merges tables, or soon will. The score of a level leaves out the tables that
// are being merged, its size does not.
func compacting(levels []badger.LevelInfo) bool {
	for i, l := range levels {
		switch {
		case i == 0 && l.Score >= 1:
			return true
		case i > 0 && i < len(levels)-1 && l.Size > 0 && l.Size >= l.TargetSize:
			return true
		}
	}
	return false
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
	err := checkSpace(db.dir, minFreeSpace)
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
