package rowfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// checkArrowFooter checks the lengths in the footer of an Arrow file. The Arrow library trusts them: damaged
// ones make it allocate or recurse without limit, which ends the program. Other damage causes an error of the
// library, or a panic that columnar.Guard catches.
//
// The footer is a flatbuffer. Slot numbers are those of Footer, Schema, Field and KeyValue in Arrow's
// format/File.fbs and format/Schema.fbs.
func checkArrowFooter(r *io.SectionReader) error {
	tail := make([]byte, 10) // length, "ARROW1"
	if r.Size() < 26 {
		return errors.New("too short")
	}
	if _, err := r.ReadAt(tail, r.Size()-10); err != nil {
		return err
	}
	size := int64(binary.LittleEndian.Uint32(tail))
	if !bytes.Equal(tail[4:], []byte("ARROW1")) || size > r.Size()-18 {
		return errors.New("no footer at its end")
	}
	b := make([]byte, size)
	if _, err := r.ReadAt(b, r.Size()-10-size); err != nil {
		return err
	}
	f := flatbuffer{b: b, left: 16 * len(b)}
	f.footer()
	if f.bad {
		return errors.New("damaged footer")
	}
	return nil
}

// CheckArrowMessage checks the lengths in the header of a message of an Arrow stream, such as a peer sends, as
// checkArrowFooter those of a file. Slot numbers are those of Message, RecordBatch and DictionaryBatch in Arrow's
// format/Message.fbs.
func CheckArrowMessage(header []byte) error {
	const schema, dictionary, batch = 1, 2, 3 // MessageHeader
	f := flatbuffer{b: header, left: 16 * len(header)}
	t := f.ref(0)
	switch kind, at := f.byte(t, 1), f.sub(t, 2); {
	case f.bad || at == 0:
		f.bad = true
	case kind == schema:
		f.schema(at)
	case kind == batch:
		f.batch(at)
	case kind == dictionary:
		f.batch(f.sub(at, 1))
	default:
		f.bad = true
	}
	if f.bad {
		return errors.New("rowfile: the header of an Arrow message is damaged")
	}
	return nil
}

// batch checks a record batch.
func (f *flatbuffer) batch(t int) {
	if t == 0 {
		f.bad = true
		return
	}
	f.vector(t, 1, 16) // field nodes
	f.vector(t, 2, 16) // buffers
}

// flatbuffer reads a flatbuffer that may be damaged. After an access out of bounds, bad is set and every read
// returns 0.
type flatbuffer struct {
	b    []byte
	left int // limit of further elements; larger than the number of bytes, since texts may be shared
	bad  bool
}

const maxFieldDepth = 32

func (f *flatbuffer) footer() {
	t := f.ref(0)
	f.schema(f.sub(t, 1))
	f.vector(t, 2, 24) // dictionary blocks
	f.vector(t, 3, 24) // record batch blocks
	f.keyValues(t, 4)
}

func (f *flatbuffer) schema(t int) {
	if t == 0 {
		f.bad = true
		return
	}
	f.fields(t, 1, 0)
	f.keyValues(t, 2)
}

func (f *flatbuffer) fields(t, slot, depth int) {
	if depth > maxFieldDepth {
		f.bad = true
	}
	at, n := f.vector(t, slot, 4)
	for i := 0; i < n && !f.bad; i++ {
		field := f.ref(at + 4*i)
		f.fields(field, 5, depth+1)
		f.keyValues(field, 6)
	}
}

func (f *flatbuffer) keyValues(t, slot int) {
	at, n := f.vector(t, slot, 4)
	for i := 0; i < n && !f.bad; i++ {
		pair := f.ref(at + 4*i)
		f.vector(pair, 0, 1)
		f.vector(pair, 1, 1)
	}
}

// u32 and u16 read at an offset.
func (f *flatbuffer) u32(at int) int {
	if f.bad || at < 0 || at+4 > len(f.b) {
		f.bad = true
		return 0
	}
	return int(binary.LittleEndian.Uint32(f.b[at:]))
}

func (f *flatbuffer) u16(at int) int {
	if f.bad || at < 0 || at+2 > len(f.b) {
		f.bad = true
		return 0
	}
	return int(binary.LittleEndian.Uint16(f.b[at:]))
}

// ref follows the offset at a position.
func (f *flatbuffer) ref(at int) int { return at + f.u32(at) }

// sub returns the position that a slot of the table at t refers to, 0 for an empty slot.
func (f *flatbuffer) sub(t, slot int) int {
	vtable := t - int(int32(f.u32(t)))
	if 4+2*slot+2 > f.u16(vtable) {
		return 0
	}
	off := f.u16(vtable + 4 + 2*slot)
	if off == 0 || f.bad {
		return 0
	}
	return f.ref(t + off)
}

// byte returns the byte in a slot of the table at t, 0 for an empty slot.
func (f *flatbuffer) byte(t, slot int) byte {
	vtable := t - int(int32(f.u32(t)))
	if 4+2*slot+2 > f.u16(vtable) {
		return 0
	}
	off := f.u16(vtable + 4 + 2*slot)
	if off == 0 || f.bad || t+off >= len(f.b) {
		return 0
	}
	return f.b[t+off]
}

// vector returns the position and the length of the vector in a slot, with elements of size bytes.
func (f *flatbuffer) vector(t, slot, size int) (at, n int) {
	v := f.sub(t, slot)
	if v == 0 || f.bad {
		return 0, 0
	}
	n = f.u32(v)
	if f.left -= n; f.left < 0 || n > (len(f.b)-v-4)/size {
		f.bad = true
		return 0, 0
	}
	return v + 4, n
}
