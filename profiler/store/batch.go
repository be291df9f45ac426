package store

import (
	"bufio"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/dgraph-io/badger/v4"
	"github.com/klauspost/compress/zstd"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
)

// batchFile holds the rows of a call of PutAll that needs several transactions, from before the first of them until after
// the last. Open stores the rows that a killed program has left in it. So a call stores all of its rows or none.
const batchFile = "BATCH"

// savedRow is a row in batchFile.
type savedRow struct {
	Key, Value       []byte
	Outcome          byte
	Provenance, Mark []byte
}

// saveBatch writes rows to batchFile.
func saveBatch(dir string, rows []row) error {
	return atomicfile.Write(filepath.Join(dir, batchFile), 0o600, func(w io.Writer) error {
		z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		out := gob.NewEncoder(z)
		for _, r := range rows {
			if err := out.Encode(savedRow{r.key, r.value, r.outcome, r.provenance, r.mark}); err != nil {
				return errors.Join(err, z.Close())
			}
		}
		return z.Close()
	})
}

// savedBatch returns the rows of batchFile, none without the file. Errors wrap ErrCorrupt if it is damaged.
func savedBatch(dir string) (rows []row, err error) {
	f, err := os.Open(filepath.Join(dir, batchFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	left := bufio.NewReader(z)
	for in := gob.NewDecoder(left); ; {
		var r savedRow
		err := in.Decode(&r)
		if errors.Is(err, io.EOF) { // or damaged: the checksum comes last
			var n int64
			if n, err = io.Copy(io.Discard, left); n == 0 && err == nil {
				return rows, nil
			}
			err = cmp.Or(err, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return nil, corrupt(dir, batchFile, err)
		}
		if _, ok := parseKey(r.Key); !ok || r.Key[0] != rowPrefix {
			return nil, corrupt(dir, batchFile, fmt.Errorf("key %q is not that of a row", firstBytes(r.Key)))
		}
		rows = append(rows, row{r.Key, r.Value, r.Outcome, r.Provenance, r.Mark})
	}
}

// hasBatch reports whether a killed program has left a batchFile.
func hasBatch(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, batchFile))
	return err == nil
}

// removeBatch removes batchFile, for good: a later change must not be undone by rows that are stored again.
func removeBatch(dir string) error {
	if err := os.Remove(filepath.Join(dir, batchFile)); err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}

// lockWriting locks writing, after it has stored the rest of a call that failed midway.
func (db *DB) lockWriting() error {
	db.writing.Lock()
	if !db.unfinished {
		return nil
	}
	if err := db.finishBatch(); err != nil {
		db.writing.Unlock()
		return fmt.Errorf("%s: storing the rest of earlier rows: %w", db.dir, err)
	}
	return nil
}

// finishBatch stores the rows of batchFile. The caller holds writing.
func (db *DB) finishBatch() error {
	rows, err := savedBatch(db.dir)
	if err != nil || rows == nil {
		return err
	}
	if _, err := db.commitAll(rows, func(*badger.Txn, Counts) error { return nil }); err != nil {
		return err
	}
	db.unfinished = false
	return removeBatch(db.dir)
}

// commitBatch is commitAll for all of rows or none. A failure after batchFile is written leaves it for finishBatch.
func (db *DB) commitBatch(rows []row, last func(*badger.Txn, Counts) error) (Counts, error) {
	if batchLen(rows) == len(rows) {
		return db.commitAll(rows, last)
	}
	if err := saveBatch(db.dir, rows); errors.Is(err, syscall.ENOSPC) {
		return Counts{}, fmt.Errorf("%w: %w", ErrNoSpace, err)
	} else if err != nil {
		return Counts{}, err
	}
	db.unfinished = true
	c, err := db.commitAll(rows, last)
	if err != nil {
		return c, err
	}
	db.unfinished = false
	return c, removeBatch(db.dir)
}
