package store

import (
	"context"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Batches is rowfile.Batches of the rows of Query, which it does not copy as often.
func (db *DB) Batches(ctx context.Context, write func(arrow.Record) error, most int, f Filter) (n int, err error) {
	b := rowfile.NewBatcher(write, most)
	err = db.each(ctx, f, func(m *spec.Measurement) (bool, error) { return true, b.Add(m) })
	if err == nil {
		err = b.Flush()
	}
	return b.Rows(), err
}
