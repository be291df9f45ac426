package store

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/dgraph-io/badger/v4"
)

// backupText is the header of a backup, with its format; the stream of the engine and a SHA-256 of all before it follow.
const backupText = "pacer measurement backup, format %d\n"

var backupHeader = fmt.Sprintf(backupText, FormatVersion)

// OldestCopy is the oldest format of backups and changes that this program reads, the first that had them.
const OldestCopy = 3

// loadPending is the number of batches that a restore keeps in memory.
const loadPending = 16

// Backup writes a copy of the store to w: all rows, marks and tombstones as of its start. Rows may be read and written
// meanwhile. Restore makes a store of it.
func (db *DB) Backup(w io.Writer) error {
	if err := db.use(); err != nil {
		return err
	}
	defer db.done()
	sum := sha256.New()
	out := io.MultiWriter(w, sum)
	if _, err := io.WriteString(out, backupHeader); err != nil {
		return fmt.Errorf("store: backup of %s: %w", db.dir, err)
	}
	stream := db.bdb.NewStream()
	stream.LogPrefix, stream.NumGo = "backup", 1
	db.writing.Lock() // until the stream has begun: no call of PutAll is half stored
	begun := sync.OnceFunc(db.writing.Unlock)
	defer begun()
	stream.ChooseKey = func(*badger.Item) bool { begun(); return true }
	if _, err := stream.Backup(out, 0); err != nil {
		return fmt.Errorf("store: backup of %s: %w", db.dir, err)
	}
	if _, err := w.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("store: backup of %s: %w", db.dir, err)
	}
	return nil
}

// CheckBackup returns an error that wraps ErrCorrupt unless the file at path is a whole backup, ErrNewer if a newer
// program wrote it.
func CheckBackup(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer f.Close()
	if _, err := backupBody(f); err != nil {
		return fmt.Errorf("store: backup %s: %w", path, err)
	}
	return nil
}

// backupBody checks the whole of f and returns the stream in it.
func backupBody(f *os.File) (*io.SectionReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size() - sha256.Size
	if size < int64(len(backupHeader)) {
		return nil, fmt.Errorf("%d bytes are too few: %w", info.Size(), ErrCorrupt)
	}
	head := make([]byte, len(backupHeader))
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if err := checkHeader(head, backupText); err != nil {
		return nil, err
	}
	sum, want := sha256.New(), make([]byte, sha256.Size)
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size)); err != nil {
		return nil, err
	}
	if _, err := f.ReadAt(want, size); err != nil {
		return nil, err
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return nil, fmt.Errorf("checksum mismatch: it is damaged or not whole: %w", ErrCorrupt)
	}
	return io.NewSectionReader(f, int64(len(backupHeader)), size-int64(len(backupHeader))), nil
}

// checkHeader returns an error if head is not text with a format that this program reads. It wraps ErrNewer for a later
// format, else ErrCorrupt.
func checkHeader(head []byte, text string) error {
	var format int
	if _, err := fmt.Sscanf(string(head), text, &format); err == nil && string(head) == fmt.Sprintf(text, format) {
		switch {
		case format > FormatVersion:
			return fmt.Errorf("it has format %d, this program reads up to %d: %w", format, FormatVersion, ErrNewer)
		case format >= OldestCopy:
			return nil
		}
	}
	return fmt.Errorf("it begins with %q, want %q: %w", head, fmt.Sprintf(text, FormatVersion), ErrCorrupt)
}

// Restore makes a store in dir, which must be empty or absent, of the backup at path. It checks the whole backup first.
// Where it fails, it leaves no store.
func Restore(path, dir string) error {
	if err := restore(path, dir); err != nil {
		return fmt.Errorf("store: restore %s: %w", path, err)
	}
	return nil
}

func restore(path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	body, err := backupBody(f)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: want a new directory, so that no measurement is overwritten", dir)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	temp := filepath.Clean(dir) + ".restoring"
	if err := os.RemoveAll(temp); err != nil { // of a restore that was killed
		return err
	}
	if err := load(temp, body); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return os.Rename(temp, dir) // replaces an empty directory
}

// load makes a store of a backup's stream.
func load(dir string, body io.Reader) error {
	db, err := open(dir, Options{})
	if err != nil {
		return err
	}
	err = func() (err error) {
		defer recoverPanic(&err)
		return db.bdb.Load(bufio.NewReaderSize(body, 1<<20), loadPending)
	}()
	if err == nil {
		err = checkRestored(db)
	}
	return errors.Join(err, db.Close())
}

// checkRestored reads every key that was restored.
func checkRestored(db *DB) error {
	return db.bdb.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			k := it.Item().Key()
			if string(k) != formatKey && !bytes.ContainsRune(ourPrefixes, rune(k[0])) {
				return fmt.Errorf("%w: key %q is not that of a store", ErrCorrupt, k)
			}
		}
		return nil
	})
}
