package store

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// Filter selects rows.
type Filter = reader.Filter

func matches(names []string, name string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

// skip returns nil if f selects the keys of g that begin with prefix, else the first later one that it may select. Names
// in a key end in 00, so name + 01 is after every key that begins with the name.
func skip(f Filter, prefix byte, g group) []byte {
	b := append([]byte{prefix}, g.model...)
	if !matches(f.Models, g.model) {
		return append(b, 1)
	}
	b = append(append(b, 0), g.accelerator...)
	if !matches(f.Accelerators, g.accelerator) {
		return append(b, 1)
	}
	b = append(append(b, 0), g.source...)
	if !matches(f.Sources, g.source) {
		return append(b, 1)
	}
	return nil
}

// Query returns the rows that f selects, as of the start of the iteration, always ordered by model,
// accelerator, source and identity. An error, such as that of ctx, is the last item. Rows that f does not
// select are not read. A quarantined row has a Doubt that says so, see spec.Measurement.Quarantine. Each measurement
// belongs to the caller.
func (db *DB) Query(ctx context.Context, f Filter) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		stop := false
		err := db.each(ctx, f, func(m *spec.Measurement) (bool, error) {
			stop = !yield(*m, nil)
			return !stop, nil
		})
		if err != nil && !stop {
			yield(spec.Measurement{}, err)
		}
	}
}

// each is Query. m is valid during the call, what it refers to longer.
func (db *DB) each(ctx context.Context, f Filter, do func(m *spec.Measurement) (more bool, err error)) error {
	read, err := db.rowReader(ctx)
	if err != nil {
		return err
	}
	var m spec.Measurement
	return db.view(func(txn *badger.Txn) error {
		anyMark := holds(txn, quarantinePrefix)
		return scan(ctx, txn, rowPrefix, f, func(g group, it *badger.Item) (bool, error) {
			err := read(g, it, &m)
			if err == nil && anyMark {
				m, _, err = readQuarantine(txn, it.Key(), m)
			}
			if err != nil {
				return false, badRow(g, it, err)
			}
			return do(&m)
		})
	})
}

// rowReader returns what reads a row of a group, with the micro-benchmarks of its accelerator.
func (db *DB) rowReader(ctx context.Context) (func(group, *badger.Item, *spec.Measurement) error, error) {
	measured, err := db.Measured(ctx)
	var d recordDecoder
	var of group
	text := ""
	return func(g group, it *badger.Item, m *spec.Measurement) error {
		err := d.read(it, m)
		if err == nil && groupOf(*m) != g {
			err = fmt.Errorf("%w: the row is of %v", ErrCorrupt, groupOf(*m))
		}
		if of != g {
			of, text = g, textOf(measured, g.accelerator)
		}
		m.Config.Accelerator.Measured = text
		return err
	}, err
}

// badRow names the row of an error.
func badRow(g group, it *badger.Item, err error) error {
	return fmt.Errorf("row %x of %s on %s from %s: %w", it.Key()[len(it.Key())-identityLen:], g.model, g.accelerator, g.source, err)
}

func readRow(it *badger.Item) (m spec.Measurement, err error) {
	err = new(recordDecoder).read(it, &m)
	return m, err
}

// read reads the row of an item.
func (d *recordDecoder) read(it *badger.Item, m *spec.Measurement) (err error) {
	if d.record, err = it.ValueCopy(d.record); err != nil {
		return fmt.Errorf("%w: value log: %w", ErrCorrupt, err)
	}
	return d.decode(d.record, m)
}

// view calls read with the present state of the store.
func (db *DB) view(read func(*badger.Txn) error) error {
	if err := db.use(); err != nil {
		return err
	}
	defer db.done()
	txn := db.bdb.NewTransaction(false)
	defer txn.Discard()
	if err := read(txn); err != nil {
		return fmt.Errorf("store: %s: %w", db.dir, err)
	}
	return nil
}

// scan calls each with the keys that begin with prefix and that f selects, in order, until it returns false. Items are
// valid only during the call. It reads only selected groups and skips the others.
func scan(ctx context.Context, txn *badger.Txn, prefix byte, f Filter, each func(group, *badger.Item) (bool, error)) error {
	return scanFrom(ctx, txn, prefix, []byte{prefix}, f, each)
}

// scanFrom is scan from a key on.
func scanFrom(ctx context.Context, txn *badger.Txn, prefix byte, from []byte, f Filter, each func(group, *badger.Item) (bool, error)) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix}})
	defer it.Close()
	var within []byte // start of the keys of the selected group that the iterator is in
	var g group
	for it.Seek(from); it.Valid(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		if within == nil || !it.ValidForPrefix(within) {
			var ok bool
			if g, ok = parseKey(it.Item().Key()); !ok {
				return fmt.Errorf("%w: key %q is not that of a row", ErrCorrupt, it.Item().Key())
			}
			within = nil
			if to := skip(f, prefix, g); to != nil {
				it.Seek(to)
				continue
			}
			within = beside(prefix, g.prefix())
		}
		if f.Outcomes == nil || hasOutcome(f.Outcomes, it.Item().UserMeta()) {
			more, err := each(g, it.Item())
			if err != nil || !more {
				return err
			}
		}
		it.Next()
	}
	return nil
}

func hasOutcome(want []spec.Outcome, code byte) bool {
	return slices.ContainsFunc(want, func(o spec.Outcome) bool { return outcomeCode(o) == code })
}

// Len returns the number of rows that f selects.
func (db *DB) Len(ctx context.Context, f Filter) (int, error) {
	n := 0
	err := db.view(func(txn *badger.Txn) error {
		return scan(ctx, txn, rowPrefix, f, func(group, *badger.Item) (bool, error) { n++; return true, nil })
	})
	return n, err
}
