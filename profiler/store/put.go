package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Limits of one transaction, well below the engine's limits for a memtable of memTableSize.
const (
	maxTxnRows  = 1024
	maxTxnBytes = 512 << 10
)

// Counts is the result of PutAll.
type Counts struct {
	Added     int // new rows
	Updated   int // same identity, other values or notes: replaced
	Unchanged int // already stored with the same values
	Forgotten int // not stored: the row was forgotten, see Forget
}

// Total returns the number of rows counted.
func (c Counts) Total() int { return c.Added + c.Updated + c.Unchanged + c.Forgotten }

// Add adds d to c.
func (c *Counts) Add(d Counts) {
	c.Added += d.Added
	c.Updated += d.Updated
	c.Unchanged += d.Unchanged
	c.Forgotten += d.Forgotten
}

// Put is PutAll without the counts. If rows were forgotten, it stores the others and returns an error.
func (db *DB) Put(ctx context.Context, ms ...spec.Measurement) error {
	n, err := db.PutAll(ctx, ms...)
	if err == nil && n.Forgotten > 0 {
		err = fmt.Errorf("store: %s: %d of %d rows not stored: they were forgotten before", db.dir, n.Forgotten, len(ms))
	}
	return err
}

// PutAll stores ms; when it returns nil, they are on disk. It does not retain ms. A row replaces the stored row
// with the same identity (see FORMAT.md), and a quarantined one stays so. A forgotten row is not stored, only counted.
// A row that comes quarantined, as from an exported file, is quarantined if it is new. If Check refuses a row, or a row
// is too large, nothing is stored and the error names the row. If ctx has ended, or the disk has no room for all rows,
// nothing is stored. If the program is killed or the disk fails midway, all rows are stored when the store is next opened
// or written to, or none. Many rows need several transactions: a reader may see the first ones before the last.
func (db *DB) PutAll(ctx context.Context, ms ...spec.Measurement) (Counts, error) {
	return db.putAll(ctx, ms, func(*badger.Txn, Counts) error { return nil })
}

// putAll is PutAll. It calls last with the counts of all rows in the transaction of the last ones.
func (db *DB) putAll(ctx context.Context, ms []spec.Measurement, last func(*badger.Txn, Counts) error) (Counts, error) {
	if err := db.use(); err != nil {
		return Counts{}, err
	}
	defer db.done()
	if db.opt.ReadOnly {
		return Counts{}, fmt.Errorf("store: put into %s: %w", db.dir, ErrReadOnly)
	}
	rows, err := db.encodeRows(ms)
	if err != nil {
		return Counts{}, err
	}
	if err := ctx.Err(); err != nil {
		return Counts{}, fmt.Errorf("store: 0 of %d rows stored: %w", len(ms), err)
	}
	if err := db.lockWriting(); err != nil {
		return Counts{}, fmt.Errorf("store: %w", err)
	}
	defer db.writing.Unlock()
	size := 0
	for i := range rows {
		size += rows[i].size()
	}
	if err := checkSpace(db.dir, minFreeSpace+spaceFactor*size); err != nil {
		return Counts{}, fmt.Errorf("store: %w", err)
	}
	c, err := db.commitBatch(rows, last)
	if err != nil {
		return c, fmt.Errorf("store: %s: %d of %d rows stored: %w", db.dir, c.Total(), len(ms), err)
	}
	return c, nil
}

// commitAll writes rows in as many transactions as they need, and calls last with the counts of all in the last one.
// Beside an error it returns the counts of the rows that are written. The caller holds writing.
func (db *DB) commitAll(rows []row, last func(*badger.Txn, Counts) error) (sum Counts, err error) {
	for len(rows) > 0 {
		n := batchLen(rows)
		c, err := db.commit(rows[:n], func(txn *badger.Txn, c Counts) error {
			if n < len(rows) {
				return nil
			}
			c.Add(sum)
			return last(txn, c)
		})
		if err != nil {
			return sum, err
		}
		sum.Add(c)
		rows = rows[n:]
	}
	return sum, nil
}

// row is an encoded measurement.
type row struct {
	key, value []byte
	outcome    byte
	provenance []byte // encoded
	mark       []byte // encoded, of a row that comes quarantined
}

// size is the size of everything that is stored for r, in bytes.
func (r *row) size() int { return 3*len(r.key) + len(r.value) + len(r.provenance) + len(r.mark) }

func (db *DB) encodeRows(ms []spec.Measurement) ([]row, error) {
	now := db.provenance()
	provenance, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(ms))
	for i, m := range ms {
		quarantined := m.Quarantined()
		m, reason := m.Unquarantine()
		err := rowfile.Check(&m)
		if err == nil && quarantined {
			rows[i].mark, err = encodeMark(Mark{reason, now.By, now.At})
		}
		if err == nil {
			rows[i].provenance = provenance
			err = rows[i].encode(m)
		}
		if err != nil {
			return nil, fmt.Errorf("store: row %d of %d (source %q, origin %q): %w", i+1, len(ms), m.Source, m.Origin, err)
		}
	}
	return rows, nil
}

func (r *row) encode(m spec.Measurement) (err error) {
	r.key, r.outcome = rowKey(m), outcomeCode(m.Outcome)
	r.value, err = encodeRecord(m)
	return err
}

// batchLen returns the number of rows that fit in one transaction, at least 1.
func batchLen(rows []row) int {
	size := 0
	for i, r := range rows {
		size += r.size()
		if i == maxTxnRows || i > 0 && size > maxTxnBytes {
			return i
		}
	}
	return len(rows)
}

// commit writes rows, and what also writes, in one transaction and waits until it is on disk. The caller holds writing.
func (db *DB) commit(rows []row, also func(*badger.Txn, Counts) error) (c Counts, err error) {
	defer recoverPanic(&err)
	txn := db.bdb.NewTransaction(true)
	defer txn.Discard()
	changes := map[tallyKey]int{}
	for _, r := range rows {
		if err := putRow(txn, r, &c, changes); err != nil {
			return Counts{}, err
		}
	}
	if err := also(txn, c); err != nil {
		return Counts{}, err
	}
	if err := txn.Commit(); err != nil {
		return Counts{}, err
	}
	db.tallies.add(changes)
	// The engine syncs its logs, but not the directory with the names of new ones.
	return c, errors.Join(db.settle(), atomicfile.SyncDir(db.dir))
}

// putRow stores r, and counts it in c and in the tallies that it changes.
func putRow(txn *badger.Txn, r row, c *Counts, changes map[tallyKey]int) error {
	same := false
	old, err := txn.Get(r.key)
	switch {
	case errors.Is(err, badger.ErrKeyNotFound):
		return addRow(txn, r, c, changes)
	case err != nil:
		return err
	}
	if err := old.Value(func(v []byte) error { same = bytes.Equal(v, r.value); return nil }); err != nil {
		return err
	}
	if same {
		c.Unchanged++
		return nil
	}
	c.Updated++
	g, _ := parseKey(r.key)
	changes[tallyKey{g, old.UserMeta()}]--
	changes[tallyKey{g, r.outcome}]++
	return r.set(txn)
}

// addRow stores a row that is not stored yet, unless it was forgotten.
func addRow(txn *badger.Txn, r row, c *Counts, changes map[tallyKey]int) error {
	forgotten, err := has(txn, beside(forgottenPrefix, r.key))
	switch {
	case err != nil:
		return err
	case forgotten:
		c.Forgotten++
		return nil
	case r.mark != nil:
		if err := txn.Set(beside(quarantinePrefix, r.key), r.mark); err != nil {
			return err
		}
	}
	c.Added++
	g, _ := parseKey(r.key)
	changes[tallyKey{g, r.outcome}]++
	return r.set(txn)
}

// set stores r and its provenance.
func (r row) set(txn *badger.Txn) error {
	if err := txn.Set(beside(provenancePrefix, r.key), r.provenance); err != nil {
		return err
	}
	return txn.SetEntry(r.entry())
}

func (r row) entry() *badger.Entry { return badger.NewEntry(r.key, r.value).WithMeta(r.outcome) }

// recoverPanic turns a panic of the engine into an error of the function that defers it.
func recoverPanic(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", ErrCorrupt, r)
	}
}
