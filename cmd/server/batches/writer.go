package batches

import (
	"bytes"
	"sync"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"github.com/apache/arrow/go/v17/arrow/ipc"
)

// NewWriter returns a writer of record batches to a stream, as flight.NewRecordWriter but with the memory of earlier streams.
func NewWriter(to flight.DataStreamWriter, schema *arrow.Schema) *ipc.Writer {
	return ipc.NewWriterWithPayloadWriter(&payloads{to: to}, ipc.WithSchema(schema))
}

// payloads sends the messages of a writer.
type payloads struct {
	to   flight.DataStreamWriter
	data flight.FlightData
}

// bodies are buffers of sent messages.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keepBody is the largest buffer to reuse, bytes.
const keepBody = 4 << 20

// Start implements ipc.PayloadWriter.
func (p *payloads) Start() error { return nil }

// WritePayload implements ipc.PayloadWriter.
func (p *payloads) WritePayload(of ipc.Payload) error {
	header := of.Meta()
	defer header.Release()
	body := bodies.Get().(*bytes.Buffer)
	defer func() {
		if body.Cap() <= keepBody {
			body.Reset()
			bodies.Put(body)
		}
	}()
	if err := of.SerializeBody(body); err != nil {
		return err
	}
	p.data.DataHeader, p.data.DataBody = header.Bytes(), body.Bytes()
	return p.to.Send(&p.data) // which copies it
}

// Close implements ipc.PayloadWriter.
func (p *payloads) Close() error { return nil }
