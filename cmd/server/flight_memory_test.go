package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// sharedText returns a column of n rows, an even number, that share the bytes of text. Without a dictionary the
// offsets go back after every row, so that only each second row has the text.
func sharedText(n int, text string, dictionary bool) arrow.Array {
	if dictionary {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		b.Append(text)
		indices := array.NewInt32Builder(memory.DefaultAllocator)
		indices.AppendValues(make([]int32, n), nil)
		of := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
		return array.NewDictionaryArray(of, indices.NewArray(), b.NewArray())
	}
	offsets, valid := make([]int32, n+1), make([]byte, (n+7)/8)
	for i := 1; i <= n; i += 2 {
		offsets[i] = int32(len(text))
	}
	for i := range valid {
		valid[i] = 0x55
	}
	buffers := []*memory.Buffer{memory.NewBufferBytes(valid), memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes([]byte(text))}
	return array.NewStringData(array.NewData(arrow.BinaryTypes.String, n, buffers, nil, n/2, 0))
}

// TestAbuseSharedTexts: a client sends a text once and asks with it in every row. The server needs no memory for the
// text of each row.
func TestAbuseSharedTexts(t *testing.T) {
	const rows = 4000
	s := newServer(t, Options{})
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range rows {
		b.Append(int64(i + 1))
	}
	devices := b.NewArray()
	for _, dictionary := range []bool{true, false} {
		for _, size := range []int{256, 128 << 10} { // the bound of names, and one beyond all
			column := sharedText(rows, strings.Repeat("a", size), dictionary)
			fields := []arrow.Field{{Name: "devices", Type: arrow.PrimitiveTypes.Int64}}
			columns := []arrow.Array{devices}
			for _, name := range []string{"model", "accelerator", "plan"} {
				fields, columns = append(fields, arrow.Field{Name: name, Type: column.DataType(), Nullable: true}), append(columns, column)
			}
			rec := array.NewRecord(arrow.NewSchema(fields, nil), columns, rows)
			_, before := usage(t)
			out, err := (&flightService{s: s}).predict(t.Context(), rec)
			if err != nil {
				t.Fatal(err)
			}
			_, after := usage(t)
			what := fmt.Sprintf("dictionary %v, text of %d bytes", dictionary, size)
			t.Logf("%s: %d KiB allocated", what, (after-before)>>10)
			// Problems take some 12 KiB of a row, mostly given back; a copy of the long texts would take 384 KiB.
			if most := uint64(96 << 20); after-before > most {
				t.Errorf("%s: %d KiB allocated, want at most %d", what, (after-before)>>10, most>>10)
			}
			for i := range rows {
				if status := out.Column(11).(*array.Int32).Value(i); status != 422 && (size > 256 || status != 404) {
					t.Fatalf("%s: row %d has no problem: %v", what, i, out.NewSlice(int64(i), int64(i)+1))
				}
			}
		}
	}
}
