package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// microKey is the key of the micro-benchmarks of an accelerator.
func microKey(accelerator string) []byte { return append([]byte{microPrefix}, accelerator...) }

// PutMicrobenchmarks stores b in place of earlier micro-benchmarks of its accelerator; when it returns nil, they are on
// disk. From then on rows of that accelerator are returned with spec.Accelerator.Measured.
func (db *DB) PutMicrobenchmarks(ctx context.Context, b spec.Microbenchmarks) error {
	err := b.Validate()
	if err == nil {
		err = rowfile.CheckName("accelerator", b.Accelerator.Name)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	value, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("store: micro-benchmarks of %s: %w", b.Accelerator.Name, err)
	}
	if err := db.use(); err != nil {
		return err
	}
	defer db.done()
	if db.opt.ReadOnly {
		return fmt.Errorf("store: put micro-benchmarks into %s: %w", db.dir, ErrReadOnly)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store: micro-benchmarks not stored: %w", err)
	}
	if err := db.set(microKey(b.Accelerator.Name), value); err != nil {
		return fmt.Errorf("store: %s: micro-benchmarks: %w", db.dir, err)
	}
	db.measured.Store(nil)
	return nil
}

// set writes one value and waits until it is on disk.
func (db *DB) set(key, value []byte) (err error) {
	db.writing.Lock()
	defer db.writing.Unlock()
	if err := checkSpace(db.dir, minFreeSpace+spaceFactor*len(value)); err != nil {
		return err
	}
	defer recoverPanic(&err)
	if err := db.bdb.Update(func(txn *badger.Txn) error { return txn.Set(key, value) }); err != nil {
		return err
	}
	return errors.Join(db.settle(), atomicfile.SyncDir(db.dir))
}

// Microbenchmarks returns the stored micro-benchmarks in order of their accelerators.
func (db *DB) Microbenchmarks(ctx context.Context) (out []spec.Microbenchmarks, err error) {
	err = db.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{microPrefix}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			var b spec.Microbenchmarks
			if err := errors.Join(ctx.Err(), itemJSON(it.Item(), &b)); err != nil {
				return err
			}
			if key := string(it.Item().Key()[1:]); key != b.Accelerator.Name {
				return fmt.Errorf("%w: micro-benchmarks of %q have the key of %q", ErrCorrupt, b.Accelerator.Name, key)
			}
			out = append(out, b)
		}
		return nil
	})
	return out, err
}

// Measured returns the accelerators with micro-benchmarks, each with its spec.Accelerator.Measured, sorted by name. The
// caller must not change them.
func (db *DB) Measured(ctx context.Context) ([]spec.Accelerator, error) {
	if known := db.measured.Load(); known != nil {
		return *known, nil
	}
	db.writing.Lock() // what is read now is kept before it can change
	defer db.writing.Unlock()
	all, err := db.Microbenchmarks(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]spec.Accelerator, len(all))
	for i, b := range all {
		out[i] = b.Accelerator
		if out[i].Measured, err = b.Digest(); err != nil {
			return nil, fmt.Errorf("store: micro-benchmarks of %s: %w", b.Accelerator.Name, err)
		}
	}
	db.measured.Store(&out)
	return out, nil
}

// MeasuredText returns spec.Accelerator.Measured of an accelerator by name, "" if it has no micro-benchmarks.
func (db *DB) MeasuredText(ctx context.Context, accelerator string) (string, error) {
	all, err := db.Measured(ctx)
	return textOf(all, accelerator), err
}

func textOf(measured []spec.Accelerator, name string) string {
	i := slices.IndexFunc(measured, func(a spec.Accelerator) bool { return a.Name == name })
	if i < 0 {
		return ""
	}
	return measured[i].Measured
}
