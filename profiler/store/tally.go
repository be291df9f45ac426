package store

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// Tally is the number of rows with one model, accelerator, source and outcome.
type Tally = reader.Tally

// tallies are the numbers of rows by group and outcome code. The first Summary counts them; writes keep them up to date.
type tallies struct {
	mu   sync.Mutex
	rows map[tallyKey]int // nil = not counted yet
}

type tallyKey struct {
	group
	outcome byte
}

// add applies the changes of a transaction that is on disk.
func (t *tallies) add(changes map[tallyKey]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		return
	}
	for k, n := range changes {
		if t.rows[k] += n; t.rows[k] == 0 {
			delete(t.rows, k)
		}
	}
}

// forget makes the next Summary count again.
func (t *tallies) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = nil
}

// Summary counts the rows by model, accelerator, source and outcome, in that order. It reads the keys of the store once,
// however many calls there are.
func (db *DB) Summary(ctx context.Context) ([]Tally, error) {
	if err := db.count(ctx); err != nil {
		return nil, err
	}
	db.tallies.mu.Lock()
	defer db.tallies.mu.Unlock()
	out := make([]Tally, 0, len(db.tallies.rows))
	for k, n := range db.tallies.rows {
		o, err := outcomeOf(k.outcome)
		if err != nil {
			return nil, err
		}
		out = append(out, Tally{Model: k.model, Accelerator: k.accelerator, Source: k.source, Outcome: o, Rows: n})
	}
	slices.SortFunc(out, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Accelerator, b.Accelerator), cmp.Compare(a.Source, b.Source),
			cmp.Compare(outcomeCode(a.Outcome), outcomeCode(b.Outcome)))
	})
	if len(out) == 0 {
		out = nil
	}
	return out, nil
}

// count counts the rows, unless they are counted. No write happens meanwhile.
func (db *DB) count(ctx context.Context) error {
	if err := db.use(); err != nil {
		return err
	}
	defer db.done()
	db.writing.Lock()
	defer db.writing.Unlock()
	db.tallies.mu.Lock()
	counted := db.tallies.rows != nil
	db.tallies.mu.Unlock()
	if counted {
		return nil
	}
	rows := map[tallyKey]int{}
	err := db.view(func(txn *badger.Txn) error {
		return scan(ctx, txn, rowPrefix, Filter{}, func(g group, it *badger.Item) (bool, error) {
			rows[tallyKey{g, it.UserMeta()}]++
			return true, nil
		})
	})
	if err != nil {
		return err
	}
	db.tallies.mu.Lock()
	defer db.tallies.mu.Unlock()
	db.tallies.rows = rows
	return nil
}
