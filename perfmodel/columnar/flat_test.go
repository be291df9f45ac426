package columnar

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
)

// oneColumn returns a Parquet file with one column x and a null in every third row.
func oneColumn(t *testing.T, rows int) *io.SectionReader {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nil)
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	for i := range rows {
		if i%3 == 2 {
			b.AppendNull()
		} else {
			b.Append(float64(i))
		}
	}
	col := b.NewArray()
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &out, nil, pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(array.NewRecord(schema, []arrow.Array{col}, int64(rows))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return io.NewSectionReader(bytes.NewReader(out.Bytes()), 0, int64(out.Len()))
}

// TestFlat: values and nulls of several batches are read in order, then an error.
func TestFlat(t *testing.T) {
	const rows = 2*flatBatch + 100
	f, err := OpenParquet(oneColumn(t, rows))
	if err != nil {
		t.Fatal(err)
	}
	chunk, err := Chunk(f, f.RowGroup(0), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := NewFlat[int64](chunk); ok {
		t.Error("numbers with a fraction are read as whole ones")
	}
	col, ok := NewFlat[float64](chunk)
	if !ok {
		t.Fatalf("%s is not read", chunk.Type())
	}
	for i := range rows {
		x, present, err := col.Next()
		if err != nil || present != (i%3 != 2) || present && x != float64(i) {
			t.Fatalf("row %d: %v, %v, %v", i, x, present, err)
		}
	}
	if _, _, err := col.Next(); err == nil {
		t.Error("a row after the last")
	}
}

// TestGuard: panics of the library, and its allocations of excessive size, are errors.
func TestGuard(t *testing.T) {
	for _, size := range []int{-1, maxAllocation + 1} {
		err := Guard(func() error { Memory().Allocate(size); return nil })
		if err == nil || !strings.Contains(err.Error(), "the file is damaged: it needs a buffer of") {
			t.Errorf("%d bytes: %v", size, err)
		}
		if err := Guard(func() error { Memory().Reallocate(size, nil); return nil }); err == nil {
			t.Errorf("%d bytes once more: no error", size)
		}
	}
	if err := Guard(func() error { return io.EOF }); err != io.EOF {
		t.Errorf("%v, want EOF", err)
	}
}
