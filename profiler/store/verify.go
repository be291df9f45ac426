package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Verified is the result of Verify.
type Verified struct {
	Rows   int      // measurements that can be read
	Bytes  int64    // of the files
	Faults []string // damaged files and rows; at most maxFaults
}

// maxFaults bounds the faults of a Verified.
const maxFaults = 100

// Verify checks the files of the open store as Open does, with all checksums, and reads every row with what is known about
// it. Damage is a fault, not an error. Writes wait while the files are read, not while the rows are.
func (db *DB) Verify(ctx context.Context) (out Verified, err error) {
	if err := db.use(); err != nil {
		return out, err
	}
	defer db.done()
	fault := func(err error) {
		if len(out.Faults) < maxFaults {
			out.Faults = append(out.Faults, err.Error())
		}
	}
	switch err := db.checkFiles(ctx); {
	case errors.Is(err, ErrCorrupt):
		fault(err)
	case err != nil:
		return out, fmt.Errorf("store: verify %s: %w", db.dir, err)
	}
	if out.Bytes, err = sizeOf(db.dir); err != nil {
		return out, fmt.Errorf("store: verify %s: %w", db.dir, err)
	}
	read, err := db.rowReader(ctx)
	if err != nil {
		return out, err
	}
	err = db.view(func(txn *badger.Txn) error {
		return scan(ctx, txn, rowPrefix, Filter{}, func(g group, it *badger.Item) (bool, error) {
			var row spec.Measurement
			err := read(g, it, &row)
			if err == nil {
				_, err = recordOf(txn, row, it)
			}
			if err != nil {
				fault(badRow(g, it, err))
			} else {
				out.Rows++
			}
			return true, nil
		})
	})
	if errors.Is(err, ErrCorrupt) {
		fault(err)
		err = nil
	}
	return out, err
}

// checkFiles checks the files of the open store. No write is under way meanwhile, so that the engine, which merges tables in the
// background, comes to an end with them. Until then the files are read again after a pause.
func (db *DB) checkFiles(ctx context.Context) error {
	db.writing.Lock()
	defer db.writing.Unlock()
	for {
		before, err := tablesOf(db.dir)
		if err != nil {
			return err
		}
		_, failed := inspect(db.dir)
		after, err := tablesOf(db.dir)
		if err != nil {
			return err
		}
		if failed == nil || slices.Equal(before, after) {
			return failed
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// tablesOf returns the names of the engine's files in dir, with the size of the MANIFEST, which each merge of tables
// makes longer.
func tablesOf(dir string) ([]string, error) {
	names, _, err := engineFiles(dir)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(filepath.Join(dir, badger.ManifestFilename))
	if err != nil {
		return nil, err
	}
	return append(names, fmt.Sprint(info.Size(), info.ModTime())), nil
}

// Size returns the bytes of the store's files. Logs of an open store count what they hold.
func (db *DB) Size() (int64, error) {
	if err := db.use(); err != nil {
		return 0, err
	}
	defer db.done()
	n, err := sizeOf(db.dir)
	if err != nil {
		return 0, fmt.Errorf("store: size of %s: %w", db.dir, err)
	}
	return n, nil
}

// sizeOf returns the bytes of the engine's files in dir, without the zeros at the ends of logs, which take no space.
func sizeOf(dir string) (sum int64, err error) {
	names, _, err := engineFiles(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // merged meanwhile
		}
		if err != nil {
			return 0, err
		}
		size := info.Size()
		switch filepath.Ext(name) {
		case ".mem", ".vlog":
			data, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return 0, err
			}
			size = int64(walkLog(data).end)
		}
		sum += size
	}
	return sum, nil
}
