package columnar

import (
	"errors"
	"io"

	"github.com/apache/arrow/go/v17/parquet/file"
)

// flatBatch is the number of values decoded at a time.
const flatBatch = 512

// Flat reads a column without lists value by value.
type Flat[T any] struct {
	chunk  batchReader[T]
	maxDef int16

	values []T
	levels []int16
	row, rows,
	value, held int // next row and value, and how many were decoded
}

// batchReader is the typed part of a column chunk reader.
type batchReader[T any] interface {
	ReadBatch(batch int64, values []T, def, rep []int16) (total int64, valuesRead int, err error)
}

// NewFlat reads chunk. Its values must have type T (parquet.ByteArray, float64, ...) and must not be in lists;
// otherwise ok is false. chunk belongs to the Flat.
func NewFlat[T any](chunk file.ColumnChunkReader) (f *Flat[T], ok bool) {
	typed, ok := chunk.(batchReader[T])
	d := chunk.Descriptor()
	if !ok || d.MaxRepetitionLevel() > 0 {
		return nil, false
	}
	return &Flat[T]{chunk: typed, maxDef: d.MaxDefinitionLevel(), values: make([]T, flatBatch), levels: make([]int16, flatBatch)}, true
}

// Next returns the value of the next row; present is false for null. A byte array is part of a buffer that
// later calls overwrite. After the last row it returns an error.
func (f *Flat[T]) Next() (value T, present bool, err error) {
	if f.row == f.rows {
		rows, held, err := f.chunk.ReadBatch(flatBatch, f.values, f.levels, nil)
		if err == nil && rows == 0 {
			err = io.EOF
		}
		if err != nil {
			return value, false, damagedIfShort(err)
		}
		f.row, f.rows, f.value, f.held = 0, int(rows), 0, held
	}
	f.row++
	if f.maxDef > 0 && f.levels[f.row-1] != f.maxDef {
		return value, false, nil
	}
	if f.value == f.held {
		return value, false, errors.New("fewer values than its levels declare")
	}
	f.value++
	return f.values[f.value-1], true, nil
}

func damagedIfShort(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("fewer rows than the file declares")
	}
	return err
}
