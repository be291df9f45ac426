package batches

import (
	"encoding/binary"
	"sync"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	flatbuffers "github.com/google/flatbuffers/go"
)

// NewWriter returns a writer of record batches to a stream, as flight.NewRecordWriter but with the memory of earlier
// streams.
func NewWriter(to flight.DataStreamWriter, schema *arrow.Schema) *ipc.Writer {
	return ipc.NewWriterWithPayloadWriter(&payloads{to: to}, ipc.WithSchema(schema))
}

// payloads sends the messages of a writer.
type payloads struct {
	to   flight.DataStreamWriter
	data flight.FlightData
}

// bodies are those of sent messages.
var bodies = sync.Pool{New: func() any { return &body{at: map[*byte]placed{}} }}

// keepBody is the largest body to reuse, bytes.
const keepBody = 4 << 20

// Start implements ipc.PayloadWriter.
func (p *payloads) Start() error { return nil }

// WritePayload implements ipc.PayloadWriter.
func (p *payloads) WritePayload(of ipc.Payload) error {
	header := of.Meta()
	defer header.Release()
	b := bodies.Get().(*body)
	defer func() {
		if cap(b.bytes) <= keepBody {
			b.reset()
			bodies.Put(b)
		}
	}()
	b.alone = !isRecordBatch(header.Bytes())
	if err := of.SerializeBody(b); err != nil {
		return err
	}
	if b.shared {
		b.place(header.Bytes())
	}
	p.data.DataHeader, p.data.DataBody = header.Bytes(), b.bytes
	return p.to.Send(&p.data) // which copies it
}

// body is the body of a message. Buffers of a record batch that are one in memory are one in it too, such as the zeros
// of columns without values: most columns of measurements have none.
type body struct {
	bytes   []byte
	offsets []int64 // of the buffers
	at      map[*byte]placed
	padding int  // bytes that follow the buffer
	shared  bool // offsets are not those of the header
	alone   bool // none may be shared
}

// placed is a buffer in a body.
type placed struct{ offset, size int }

func (b *body) reset() {
	clear(b.at)
	*b = body{bytes: b.bytes[:0], offsets: b.offsets[:0], at: b.at}
}

// Write implements io.Writer for Payload.SerializeBody: buffer is one that is not empty, or the padding after one.
func (b *body) Write(buffer []byte) (int, error) {
	if b.padding > 0 {
		b.padding = 0
		return len(buffer), nil
	}
	b.padding = -len(buffer) & 7
	p := b.at[&buffer[0]]
	if p.size >= len(buffer) && !b.alone {
		b.shared = true
	} else {
		p = placed{len(b.bytes), len(buffer)}
		b.at[&buffer[0]] = p
		b.bytes = append(append(b.bytes, buffer...), make([]byte, b.padding)...)
	}
	b.offsets = append(b.offsets, int64(p.offset))
	return len(buffer), nil
}

// Slots of Message and of RecordBatch, and the type of the header of a record batch, in Arrow's format/Message.fbs.
const (
	headerTypeSlot, headerSlot, bodyLengthSlot = 4 + 2*1, 4 + 2*2, 4 + 2*3

	buffersSlot = 4 + 2*2

	recordBatch = 3
)

func isRecordBatch(header []byte) bool {
	message := flatbuffers.Table{Bytes: header, Pos: flatbuffers.GetUOffsetT(header)}
	at := message.Offset(headerTypeSlot)
	return at != 0 && message.GetByte(message.Pos+flatbuffers.UOffsetT(at)) == recordBatch
}

// place changes the header of the record batch to the offsets and the size of b.
func (b *body) place(header []byte) {
	message := flatbuffers.Table{Bytes: header, Pos: flatbuffers.GetUOffsetT(header)}
	length := message.Pos + flatbuffers.UOffsetT(message.Offset(bodyLengthSlot))
	binary.LittleEndian.PutUint64(header[length:], uint64(len(b.bytes)))
	var of flatbuffers.Table
	message.Union(&of, flatbuffers.UOffsetT(message.Offset(headerSlot)))
	at := flatbuffers.UOffsetT(of.Offset(buffersSlot))
	next := 0
	for i := range of.VectorLen(at) {
		buffer := header[int(of.Vector(at))+16*i:][:16] // offset and length
		offset := int64(0)
		if binary.LittleEndian.Uint64(buffer[8:]) > 0 {
			offset, next = b.offsets[next], next+1
		}
		binary.LittleEndian.PutUint64(buffer, uint64(offset))
	}
}

// Close implements ipc.PayloadWriter.
func (p *payloads) Close() error { return nil }
