package rowfile

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// columnBuilder collects the cells of a column. Most columns are null or constant over many rows: a null costs nothing but
// its count, and equal cells are added at once.
type columnBuilder struct {
	*column
	room  int // rows of a record batch
	last  int // rows of the one before
	n     int // rows until now
	nulls int
	valid []byte // bitmap; nil = all rows are null, or none is

	// Values of the rows until the last that is not null.
	ints    []int64 // whole numbers, timestamps
	floats  []float64
	flags   []byte  // bitmap
	offsets []int32 // into text, or into floats of lists; one more than rows
	text    []byte
}

// null adds n nulls.
func (b *columnBuilder) null(n int) {
	if b.valid == nil && b.n > b.nulls {
		b.valid = b.bitmap()
		bitutil.SetBitsTo(b.valid, 0, int64(b.n), true)
	}
	b.nulls += n
	b.n += n
}

// grow counts n rows that are not null.
func (b *columnBuilder) grow(n int) {
	if b.valid == nil && b.nulls > 0 {
		b.valid = b.bitmap()
	}
	if b.valid != nil {
		bitutil.SetBitsTo(b.valid, int64(b.n), int64(n), true)
	}
	b.n += n
}

func (b *columnBuilder) bitmap() []byte { return make([]byte, bitutil.BytesForBits(int64(b.room))) }

// extend returns s with a length of at least n, zero behind its end.
func extend[T any](b *columnBuilder, s []T, n int) []T {
	switch {
	case n <= len(s):
		return s
	case n <= cap(s):
		return s[:n]
	}
	out := make([]T, n, max(n, min(max(2*cap(s), b.last+1, rowsAtOnce), b.room+1)))
	copy(out, s)
	return out
}

// end sets the end of the text or list of n rows from the present one on.
func (b *columnBuilder) end(n int) {
	from := len(b.offsets)
	b.offsets = extend(b, b.offsets, b.n+n+1)
	for i := max(from, 1); i < b.n+1; i++ { // of nulls
		b.offsets[i] = b.offsets[i-1]
	}
	end := int32(len(b.text) + len(b.floats))
	for i := b.n + 1; i < len(b.offsets); i++ {
		b.offsets[i] = end
	}
}

func (b *columnBuilder) addText(s string, n int) {
	if s == "" && !b.required {
		b.null(n)
		return
	}
	for range n {
		b.text = append(b.text, s...)
		b.end(1)
		b.grow(1)
	}
}

func (b *columnBuilder) addWhole(v int64, n int) {
	if v == 0 && !b.required {
		b.null(n)
		return
	}
	b.addInt(v, n)
}

func (b *columnBuilder) addInt(v int64, n int) {
	b.ints = extend(b, b.ints, b.n+n)
	for i := b.n; i < b.n+n; i++ {
		b.ints[i] = v
	}
	b.grow(n)
}

func (b *columnBuilder) addNumber(v float64, n int) {
	if v == 0 && !b.required {
		b.null(n)
		return
	}
	b.floats = extend(b, b.floats, b.n+n)
	for i := b.n; i < b.n+n; i++ {
		b.floats[i] = v
	}
	b.grow(n)
}

func (b *columnBuilder) addFlag(v bool, n int) {
	if v && b.flags == nil {
		b.flags = b.bitmap()
	}
	if v {
		bitutil.SetBitsTo(b.flags, int64(b.n), int64(n), true)
	}
	b.grow(n)
}

func (b *columnBuilder) addList(v []float64) {
	b.floats = append(b.floats, v...)
	b.end(1)
	b.grow(1)
}

// array returns the column as an array, and begins the next one. zeros are enough for a column without values.
func (b *columnBuilder) array(zeros []byte) arrow.Array {
	bits := int(bitutil.BytesForBits(int64(b.n)))
	buffers := []*memory.Buffer{nil, nil}
	switch {
	case b.valid != nil:
		buffers[0] = memory.NewBufferBytes(b.valid[:bits])
	case b.nulls > 0:
		buffers[0] = memory.NewBufferBytes(zeros[:bits])
	}
	var children []arrow.ArrayData
	size, values := 8*b.n, []byte(nil)
	switch b.kind {
	case textKind, listKind:
		if size = 4 * (b.n + 1); b.offsets != nil {
			b.end(0)
			values = arrow.Int32Traits.CastToBytes(b.offsets)
		}
	case numberKind:
		if b.floats != nil {
			values = arrow.Float64Traits.CastToBytes(extend(b, b.floats, b.n))
		}
	case flagKind:
		size, values = bits, b.flags
	default:
		if b.ints != nil {
			values = arrow.Int64Traits.CastToBytes(extend(b, b.ints, b.n))
		}
	}
	if values == nil {
		values = zeros
	}
	buffers[1] = memory.NewBufferBytes(values[:size])
	switch b.kind {
	case textKind:
		buffers = append(buffers, memory.NewBufferBytes(b.text))
	case listKind:
		of := memory.NewBufferBytes(arrow.Float64Traits.CastToBytes(b.floats))
		children = append(children, array.NewData(arrow.PrimitiveTypes.Float64, len(b.floats), []*memory.Buffer{nil, of}, nil, 0, 0))
	}
	out := array.MakeFromData(array.NewData(b.kind.arrowType(), b.n, buffers, children, b.nulls, 0))
	*b = columnBuilder{column: b.column, room: b.room, last: b.n, text: make([]byte, 0, len(b.text))}
	return out
}

// recordBuilder collects rows as a record batch of Schema.
type recordBuilder struct {
	schema  *arrow.Schema
	columns []columnBuilder
	zeros   []byte
}

// newRecordBuilder returns a builder of record batches of up to most rows.
func newRecordBuilder(most int) *recordBuilder {
	b := &recordBuilder{schema: Schema(), columns: make([]columnBuilder, len(columns))}
	for i := range columns {
		b.columns[i] = columnBuilder{column: &columns[i], room: most}
	}
	return b
}

// add adds rows column by column. Beside an error it returns the index of its row.
func (b *recordBuilder) add(rows []spec.Measurement) (at int, err error) {
	runs := runsOf(rows)
	for i := range b.columns {
		c := &b.columns[i]
		for _, run := range runs[c.part] {
			if err := c.add(c, &rows[run.first], run.n); err != nil {
				return run.first, err
			}
		}
	}
	return 0, nil
}

// record returns the rows as a record batch, and begins the next one.
func (b *recordBuilder) record() arrow.Record {
	arrays, n := make([]arrow.Array, len(b.columns)), b.columns[0].n
	if need := 8 * (n + 1); len(b.zeros) < need {
		b.zeros = make([]byte, need)
	}
	for i := range b.columns {
		arrays[i] = b.columns[i].array(b.zeros)
	}
	return array.NewRecord(b.schema, arrays, int64(n))
}
