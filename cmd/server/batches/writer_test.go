package batches

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/flight"

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
			r, err := flight.NewRecordReader(&s)
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
				if err := rowfile.CheckArrowMessage(s.messages[1+i].DataHeader); err != nil {
					t.Errorf("record batch %d: %v", i+1, err)
				}
			}
			if r.Next() {
				t.Error("more record batches than were written")
			}
		})
	}
}
