package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dgraph-io/badger/v4"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Provenance is how a row came into the store.
type Provenance struct {
	By   string    `json:"by"`             // USER@HOST
	From string    `json:"from,omitempty"` // file or command, "" = unknown
	At   time.Time `json:"at"`
}

// Mark is the reason, user (USER@HOST) and time of a quarantine, or of forgetting a row.
type Mark struct {
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

// Record is a row with what the store knows about it.
type Record struct {
	Row         spec.Measurement // as by Query; of a forgotten row the names of its model and accelerator, source and origin
	Provenance  *Provenance      // nil = unknown: the row is forgotten, or stored by an earlier release
	Quarantined *Mark            // nil = it is not
	Forgotten   *Mark            // nil = it is not

	key []byte // of the row
}

// tombstone is the stored value of a forgotten row. Its origin and inFile are for Origins.
type tombstone struct {
	Mark
	Origin string `json:"origin,omitempty"`
	InFile []byte `json:"in_file"` // identityInFile
}

// maxReason is the length of the longest reason, in bytes.
const maxReason = 500

// CheckReason reports why the reason of a Mark cannot be stored.
func CheckReason(reason string) error {
	read, _ := spec.Measurement{Doubt: "x"}.Quarantine(reason).Unquarantine()
	switch {
	case len(reason) > maxReason:
		return fmt.Errorf("store: reason of %d bytes, want at most %d", len(reason), maxReason)
	case !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl):
		return fmt.Errorf("store: reason %q is not one line of text", reason)
	case read.Doubt != "x":
		return fmt.Errorf("store: reason %q contains the separator of reasons, %q", reason, "; besides: ")
	}
	return nil
}

func encodeMark(m Mark) ([]byte, error) {
	if err := CheckReason(m.Reason); err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// provenance returns that of what is stored now.
func (db *DB) provenance() Provenance {
	now := time.Now
	if db.opt.Now != nil {
		now = db.opt.Now
	}
	return Provenance{By: cmp.Or(db.opt.By, osUser()), From: db.opt.From, At: now().UTC().Truncate(time.Second)}
}

// osUser returns USER@HOST of the operating system.
func osUser() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return strings.ToValidUTF8(cmp.Or(name, "unknown")+"@"+host, "?")
}

// Quarantine marks rows, each with its reason. From then on Query returns them with a Doubt. It returns the number of
// rows that it marked: forgotten ones stay forgotten, and quarantined ones keep their first mark.
//
// Like Forget and Release it changes each row completely or not at all, also when the process is killed, and all rows
// at once unless they are thousands: then an interrupted call has changed the first ones, and the same call changes the
// others.
func (db *DB) Quarantine(ctx context.Context, rs []Record, reasons []string) (int, error) {
	if len(reasons) != len(rs) {
		return 0, fmt.Errorf("store: %d reasons to quarantine %d rows, want one each", len(reasons), len(rs))
	}
	now := db.provenance()
	return db.change(ctx, "quarantine", rs, func(txn *badger.Txn, i int) (bool, error) {
		r := &rs[i]
		value, err := encodeMark(Mark{reasons[i], now.By, now.At})
		if err != nil {
			return false, err
		}
		stored, err := has(txn, r.key)
		if err != nil || !stored {
			return false, err
		}
		marked, err := has(txn, beside(quarantinePrefix, r.key))
		if err != nil || marked {
			return false, err
		}
		return true, txn.Set(beside(quarantinePrefix, r.key), value)
	})
}

// Forget deletes rows and leaves tombstones, so that PutAll does not store them again. It returns the number of deleted
// rows.
func (db *DB) Forget(ctx context.Context, rs []Record, reason string) (int, error) {
	now := db.provenance()
	if err := CheckReason(reason); err != nil {
		return 0, err
	}
	return db.change(ctx, "forget", rs, func(txn *badger.Txn, i int) (bool, error) {
		r := &rs[i]
		stored, err := has(txn, r.key)
		if err != nil || !stored {
			return false, err
		}
		inFile := identityInFile(r.Row)
		value, err := json.Marshal(tombstone{Mark{reason, now.By, now.At}, r.Row.Origin, inFile[:]})
		if err != nil {
			return false, err
		}
		for _, key := range [][]byte{r.key, beside(provenancePrefix, r.key), beside(quarantinePrefix, r.key)} {
			if err := txn.Delete(key); err != nil {
				return false, err
			}
		}
		return true, txn.Set(beside(forgottenPrefix, r.key), value)
	})
}

// Release ends the quarantine of rows and removes the tombstones of forgotten ones, which can be stored again then. It
// returns the number of both.
func (db *DB) Release(ctx context.Context, rs []Record) (int, error) {
	return db.change(ctx, "release", rs, func(txn *badger.Txn, i int) (bool, error) {
		changed := false
		for _, prefix := range []byte{quarantinePrefix, forgottenPrefix} {
			key := beside(prefix, rs[i].key)
			marked, err := has(txn, key)
			if err == nil && marked {
				changed, err = true, txn.Delete(key)
			}
			if err != nil {
				return false, err
			}
		}
		return changed, nil
	})
}

// change calls each with the indices of rs and returns how often it returned true. It halves a transaction that is too
// large.
func (db *DB) change(ctx context.Context, what string, rs []Record, each func(txn *badger.Txn, i int) (bool, error)) (n int, err error) {
	if err := db.use(); err != nil {
		return 0, err
	}
	defer db.done()
	if db.opt.ReadOnly {
		return 0, fmt.Errorf("store: %s in %s: %w", what, db.dir, ErrReadOnly)
	}
	for at, batch := 0, len(rs); at < len(rs); {
		changed := 0
		batch = min(batch, len(rs)-at)
		if err = ctx.Err(); err == nil {
			changed, err = db.changeBatch(at, at+batch, each)
		}
		switch {
		case errors.Is(err, badger.ErrTxnTooBig) && batch > 1:
			batch /= 2
			continue
		case err != nil:
			return n, fmt.Errorf("store: %s: %s: %d rows changed before: %w", db.dir, what, n, err)
		}
		n, at = n+changed, at+batch
	}
	return n, nil
}

// changeBatch calls each with from to to-1 in one transaction, and waits until it is on disk.
func (db *DB) changeBatch(from, to int, each func(txn *badger.Txn, i int) (bool, error)) (n int, err error) {
	if err := db.lockWriting(); err != nil {
		return 0, err
	}
	defer db.writing.Unlock()
	if err := checkSpace(db.dir, minFreeSpace); err != nil {
		return 0, err
	}
	defer recoverPanic(&err)
	txn := db.bdb.NewTransaction(true)
	defer txn.Discard()
	for i := from; i < to; i++ {
		changed, err := each(txn, i)
		if err != nil {
			return 0, err
		}
		if changed {
			n++
		}
	}
	if err := txn.Commit(); err != nil {
		return 0, err
	}
	db.tallies.forget() // rows may be deleted
	return n, errors.Join(db.settle(), atomicfile.SyncDir(db.dir))
}
