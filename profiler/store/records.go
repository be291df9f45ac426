package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// has reports whether a key is stored.
func has(txn *badger.Txn, key []byte) (bool, error) {
	_, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	return err == nil, err
}

// holds reports whether a key begins with prefix.
func holds(txn *badger.Txn, prefix byte) bool {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix}})
	defer it.Close()
	it.Rewind()
	return it.Valid()
}

// readJSON reads the value of a key; ok is false without one.
func readJSON(txn *badger.Txn, key []byte, to any) (ok bool, err error) {
	it, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, itemJSON(it, to)
}

func itemJSON(it *badger.Item, to any) error {
	return it.Value(func(v []byte) error {
		if err := json.Unmarshal(v, to); err != nil {
			return fmt.Errorf("%w: value of key %q: %w", ErrCorrupt, it.Key(), err)
		}
		return nil
	})
}

// readQuarantine returns m as the mark of its key says, and the mark, nil without one.
func readQuarantine(txn *badger.Txn, rowKey []byte, m spec.Measurement) (spec.Measurement, *Mark, error) {
	var mark Mark
	ok, err := readJSON(txn, beside(quarantinePrefix, rowKey), &mark)
	if err != nil || !ok {
		return m, nil, err
	}
	return m.Quarantine(mark.Reason), &mark, nil
}

// ErrPosition is the error of a position that Page did not return.
var ErrPosition = errors.New("not the position of a row")

// Page returns the rows that f selects after a position, in the order of Query: at most limit of them, and no more once
// their records have most bytes. after is nil at first, then next of the page before; next is nil after the last page.
// Rows that are there from the first page to the last are given once, whatever is stored or forgotten meanwhile. A page
// reads its rows alone. Forgotten rows are not given.
func (db *DB) Page(ctx context.Context, f Filter, after []byte, limit, most int) (out []Record, next []byte, err error) {
	from := []byte{rowPrefix}
	if after != nil {
		if _, ok := parseKey(after); !ok || after[0] != rowPrefix {
			return nil, nil, ErrPosition
		}
		from = append(slices.Clone(after), 0) // the first key after it
	}
	read, err := db.rowReader(ctx)
	if err != nil {
		return nil, nil, err
	}
	size := 0
	err = db.view(func(txn *badger.Txn) error {
		return scanFrom(ctx, txn, rowPrefix, from, f, func(g group, it *badger.Item) (bool, error) {
			if len(out) == limit || size >= most {
				next = out[len(out)-1].key
				return false, nil
			}
			size += int(it.ValueSize())
			var row spec.Measurement
			if err := read(g, it, &row); err != nil {
				return false, badRow(g, it, err)
			}
			r, err := recordOf(txn, row, it)
			if err != nil {
				return false, badRow(g, it, err)
			}
			out = append(out, r)
			return true, nil
		})
	})
	return out, next, err
}

// Records returns the rows that f selects with what is known about them, in the order of Query, then the forgotten
// ones.
func (db *DB) Records(ctx context.Context, f Filter) (out []Record, err error) {
	read, err := db.rowReader(ctx)
	if err != nil {
		return nil, err
	}
	err = db.view(func(txn *badger.Txn) error {
		err := scan(ctx, txn, rowPrefix, f, func(g group, it *badger.Item) (bool, error) {
			var row spec.Measurement
			if err := read(g, it, &row); err != nil {
				return false, badRow(g, it, err)
			}
			r, err := recordOf(txn, row, it)
			if err != nil {
				return false, badRow(g, it, err)
			}
			out = append(out, r)
			return true, nil
		})
		if err != nil {
			return err
		}
		return scanForgotten(ctx, txn, f, func(r Record, _ tombstone) { out = append(out, r) })
	})
	return out, err
}

// recordOf returns the row of an item with what is known about it.
func recordOf(txn *badger.Txn, row spec.Measurement, it *badger.Item) (r Record, err error) {
	r.key = it.KeyCopy(nil)
	if r.Row, r.Quarantined, err = readQuarantine(txn, r.key, row); err != nil {
		return r, err
	}
	var p Provenance
	if ok, err := readJSON(txn, beside(provenancePrefix, r.key), &p); ok {
		r.Provenance = &p
		return r, err
	}
	return r, err
}

// Forgotten returns the forgotten rows that f selects.
func (db *DB) Forgotten(ctx context.Context, f Filter) (out []Record, err error) {
	err = db.view(func(txn *badger.Txn) error {
		return scanForgotten(ctx, txn, f, func(r Record, _ tombstone) { out = append(out, r) })
	})
	return out, err
}

func scanForgotten(ctx context.Context, txn *badger.Txn, f Filter, each func(Record, tombstone)) error {
	return scan(ctx, txn, forgottenPrefix, f, func(g group, it *badger.Item) (bool, error) {
		var t tombstone
		if err := itemJSON(it, &t); err != nil {
			return false, badRow(g, it, err)
		}
		r := Record{Forgotten: &t.Mark, key: slices.Concat([]byte{rowPrefix}, it.Key()[1:])}
		r.Row.Config.Model.Name, r.Row.Config.Accelerator.Name, r.Row.Source, r.Row.Origin = g.model, g.accelerator, g.source, t.Origin
		each(r, t)
		return true, nil
	})
}
