package batches

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"github.com/apache/arrow/go/v17/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
)

// sent are the messages of a stream, sent and received again.
type sent struct {
	messages []*flight.FlightData
	next     int
}

func (s *sent) Send(m *flight.FlightData) error {
	s.messages = append(s.messages, &flight.FlightData{DataHeader: slices.Clone(m.DataHeader), DataBody: slices.Clone(m.DataBody)})
	return nil
}

func (s *sent) Recv() (*flight.FlightData, error) {
	if s.next == len(s.messages) {
		return nil, io.EOF
	}
	s.next++
	return s.messages[s.next-1], nil
}

// TestWriterSharesBuffers: a reader of Arrow reads the record batches that were written, in every column, and columns
// without values take no bytes of their own.
func TestWriterSharesBuffers(t *testing.T) {
	for _, rows := range []int{1, 7, 64, 100, 1000} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			var want []arrow.Record
			var s sent
			w := NewWriter(&s, rowfile.Schema())
			n, err := rowfile.Batches(func(rec arrow.Record) error {
				rec.Retain()
				want = append(want, rec)
				return w.Write(rec)
			}, 256, rowfiletest.Seq(rowfiletest.InventedRows(rows)))
			if err != nil || n != rows {
				t.Fatal(n, err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			s.holds(t, want)
			for i, rec := range want {
				all := 0
				for _, c := range rec.Columns() {
					for _, b := range c.Data().Buffers() {
						if b != nil {
							all += b.Len()
						}
					}
				}
				if body := len(s.messages[1+i].DataBody); rows == 1000 && body > 3*all/4 {
					t.Errorf("record batch %d: a body of %d bytes, the buffers have %d", i+1, body, all)
				}
			}
		})
	}
}

// Parts of a column may be columns, too, before it and after it.
func TestWriterSharesParts(t *testing.T) {
	numbers := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range 100 {
		numbers.Append(int64(i))
	}
	all := numbers.NewArray()
	first, second, middle := array.NewSlice(all, 0, 50), array.NewSlice(all, 50, 100), array.NewSlice(all, 3, 53)
	none := array.NewSlice(all, 0, 0)
	for _, columns := range [][]arrow.Array{{first, second, middle}, {middle, first}, {second, second}, {all, all}, {none, none}} {
		var fields []arrow.Field
		for i := range columns {
			fields = append(fields, arrow.Field{Name: fmt.Sprint(i), Type: arrow.PrimitiveTypes.Int64})
		}
		schema := arrow.NewSchema(fields, nil)
		rec := array.NewRecord(schema, columns, int64(columns[0].Len()))
		var s sent
		w := NewWriter(&s, schema)
		if err := errors.Join(w.Write(rec), w.Close()); err != nil {
			t.Fatal(err)
		}
		s.holds(t, []arrow.Record{rec})
	}
}

// A buffer that begins where a shorter one began is in the body as a whole.
func TestBodyOfLongerBuffer(t *testing.T) {
	b := &body{at: map[*byte]placed{}}
	memory := []byte("0123456789abcdefghijklmnopqrstuv")
	for i, n := range []int{8, 32, 16, 8} {
		if _, err := b.Write(memory[:n]); err != nil {
			t.Fatal(err)
		}
		if at := int(b.offsets[i]); !bytes.HasPrefix(b.bytes[at:], memory[:n]) {
			t.Errorf("%d bytes are at %d of %q", n, at, b.bytes)
		}
	}
	if len(b.bytes) != 40 {
		t.Errorf("a body of %d bytes, want 40", len(b.bytes))
	}
}

// holds checks that the messages are record batches that a reader of Arrow reads, and that every buffer lies in the body
// at a multiple of 8, as the format asks for.
func (s *sent) holds(t *testing.T, want []arrow.Record) {
	t.Helper()
	r, err := flight.NewRecordReader(s)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for i, rec := range want {
		if !r.Next() {
			t.Fatalf("record batch %d of %d: %v", i+1, len(want), r.Err())
		}
		if got := r.Record(); !array.RecordEqual(got, rec) {
			t.Errorf("record batch %d: %v, want %v", i+1, got, rec)
		}
		header, body := s.messages[1+i].DataHeader, s.messages[1+i].DataBody
		if err := rowfile.CheckArrowMessage(header); err != nil {
			t.Errorf("record batch %d: %v", i+1, err)
		}
		message := flatbuffers.Table{Bytes: header, Pos: flatbuffers.GetUOffsetT(header)}
		if n := message.GetInt64Slot(bodyLengthSlot, 0); n != int64(len(body)) {
			t.Errorf("record batch %d: a body of %d bytes, the header says %d", i+1, len(body), n)
		}
		var of flatbuffers.Table
		message.Union(&of, flatbuffers.UOffsetT(message.Offset(headerSlot)))
		at := flatbuffers.UOffsetT(of.Offset(buffersSlot))
		for k := range of.VectorLen(at) {
			buffer := of.Vector(at) + flatbuffers.UOffsetT(16*k)
			offset, n := of.GetInt64(buffer), of.GetInt64(buffer+8)
			if offset%8 != 0 || offset < 0 || n < 0 || offset+n > int64(len(body)) {
				t.Errorf("record batch %d: buffer %d is at %d, %d bytes, of %d", i+1, k, offset, n, len(body))
			}
		}
	}
	if r.Next() {
		t.Error("more record batches than were written")
	}
}
