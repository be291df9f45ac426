package server

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/columnar"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
)

// maxBatch bounds the rows of a record batch of a client, as the lists of HTTP.
const maxBatch = 10000

// recordReader reads the record batches of a client. The Arrow library trusts its input: see package columnar.
type recordReader struct {
	from   *checkedMessages
	reader *flight.Reader
}

// newRecordReader reads the schema, and the descriptor that comes with it. sum, unless nil, hashes the messages.
func newRecordReader(stream flight.DataStreamReader, maxBody int64, sum hash.Hash) (*recordReader, error) {
	r := &recordReader{from: &checkedMessages{DataStreamReader: stream, sum: sum}}
	err := columnar.Guard(func() (err error) {
		r.reader, err = flight.NewRecordReader(r.from, ipc.WithAllocator(&boundedMemory{left: 8 * maxBody}))
		return err
	})
	return r, r.failure(err)
}

// next returns the next record batch, valid until the one after it. The error is io.EOF after the last one.
func (r *recordReader) next() (rec arrow.Record, err error) {
	err = columnar.Guard(func() (err error) {
		rec, err = r.reader.Read()
		return err
	})
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err == nil && (rec.NumRows() < 0 || rec.NumRows() > maxBatch) {
		err = badFlight(fmt.Sprintf("the record batch has %d rows, want at most %d", rec.NumRows(), maxBatch))
	}
	return rec, r.failure(err)
}

// failure is err, that of the stream where that has failed.
func (r *recordReader) failure(err error) error {
	var ready *problem.Problem
	switch {
	case err == nil || errors.As(err, &ready):
		return err
	case r.from.err != nil && !errors.Is(r.from.err, io.EOF):
		return r.from.err
	case r.from.err != nil && errors.Is(err, io.EOF):
		return problem.New(http.StatusBadRequest, "", "the stream ends before the schema of its record batches")
	}
	return problem.New(http.StatusBadRequest, "", "the record batches cannot be read: "+err.Error())
}

// release frees the last record batch.
func (r *recordReader) release() { r.reader.Release() }

// checkedMessages checks the messages of a client before the Arrow library reads them.
type checkedMessages struct {
	flight.DataStreamReader
	sum hash.Hash // nil without one
	err error     // of the stream
}

// Recv implements flight.DataStreamReader.
func (c *checkedMessages) Recv() (*flight.FlightData, error) {
	m, err := c.DataStreamReader.Recv()
	if err != nil {
		c.err = err
		return nil, err
	}
	if c.err = rowfile.CheckArrowMessage(m.DataHeader); c.err != nil {
		c.err = problem.New(http.StatusBadRequest, "", c.err.Error())
		return nil, c.err
	}
	if c.sum != nil {
		c.sum.Write(m.DataHeader)
		c.sum.Write(m.DataBody)
	}
	return m, nil
}

// boundedMemory panics once more than a number of bytes was allocated, for columnar.Guard to recover.
type boundedMemory struct {
	memory.GoAllocator
	left int64
}

// Allocate implements memory.Allocator.
func (a *boundedMemory) Allocate(size int) []byte {
	a.take(int64(size))
	return a.GoAllocator.Allocate(size)
}

// Reallocate implements memory.Allocator.
func (a *boundedMemory) Reallocate(size int, b []byte) []byte {
	a.take(int64(size) - int64(len(b)))
	return a.GoAllocator.Reallocate(size, b)
}

// Free implements memory.Allocator.
func (a *boundedMemory) Free(b []byte) { a.left += int64(len(b)) }

func (a *boundedMemory) take(n int64) {
	if n > a.left {
		panic(fmt.Sprintf("it needs %d bytes more than a record batch may", n-a.left))
	}
	a.left -= n
}

// pathOf returns the path of a descriptor with one element, "" for others.
func pathOf(d *flight.FlightDescriptor) string {
	if len(d.GetPath()) != 1 {
		return ""
	}
	return d.Path[0]
}
