package rowfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
)

// An exported file has a SHA-256 of its other bytes right before its footer, where readers of Arrow and Parquet
// look at nothing: they find the footer by its length, which is at the end of the file.
//
//	+------+-----------------------+---------+--------+------------+-------+
//	| data | checksumMark (16)     | SHA-256 | footer | length (4) | magic |
//	+------+-----------------------+---------+--------+------------+-------+

// checksumMark precedes the checksum. Random bytes around the name make it unlikely in data.
const checksumMark = "\x9e\xb1PACERSHA256\xf7\x03\xd4"

const checksumSize = int64(len(checksumMark) + sha256.Size)

// Sizes of length and magic at the end of a file.
const (
	parquetEnd = 8  // length, "PAR1"
	arrowEnd   = 10 // length, "ARROW1"
)

// summedWriter adds the checksum to a file that is written through it.
type summedWriter struct {
	w    io.Writer
	sum  hash.Hash
	last *bytes.Buffer // what is written since hold
}

func newSummedWriter(w io.Writer) *summedWriter { return &summedWriter{w: w, sum: sha256.New()} }

func (s *summedWriter) Write(b []byte) (int, error) {
	if s.last != nil {
		return s.last.Write(b)
	}
	s.sum.Write(b)
	return s.w.Write(b)
}

// hold keeps what is written from now on, which ends with the footer, for end.
func (s *summedWriter) hold() { s.last = new(bytes.Buffer) }

// end writes the held bytes, with the checksum before the footer; size is that of length and magic.
func (s *summedWriter) end(size int) error {
	b := s.last.Bytes()
	footer := len(b) - size
	if footer >= 0 {
		footer -= int(binary.LittleEndian.Uint32(b[len(b)-size:]))
	}
	if footer < 0 {
		return errors.New("the file was written without a footer")
	}
	s.last = nil
	if _, err := s.Write(append(b[:footer:footer], checksumMark...)); err != nil {
		return err
	}
	s.sum.Write(b[footer:])
	_, err := s.w.Write(append(s.sum.Sum(nil), b[footer:]...))
	return err
}

// errChecksum is the error of a file with other bytes than were written.
var errChecksum = errors.New("the file is damaged: its checksum does not match")

// checkSum compares a file with its checksum, if it has one; end is the size of length and magic.
func checkSum(r *io.SectionReader, end int64) error {
	length := make([]byte, 4)
	if r.Size() < end {
		return nil // its reader refuses it
	}
	if _, err := r.ReadAt(length, r.Size()-end); err != nil {
		return err
	}
	at := r.Size() - end - int64(binary.LittleEndian.Uint32(length)) - checksumSize
	found := make([]byte, checksumSize)
	if at >= 0 {
		if _, err := r.ReadAt(found, at); err != nil {
			return err
		}
	}
	mark, want := found[:len(checksumMark)], found[len(checksumMark):]
	if string(mark) != checksumMark {
		return checkNoSum(r)
	}
	sum := sha256.New()
	for _, part := range []*io.SectionReader{io.NewSectionReader(r, 0, at+int64(len(mark))), io.NewSectionReader(r, at+checksumSize, r.Size())} {
		if _, err := io.Copy(sum, part); err != nil {
			return fmt.Errorf("cannot read the file: %w", err)
		}
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return errChecksum
	}
	return nil
}

// checkNoSum returns an error if a file has a checksum after all: the length of its footer is damaged then.
func checkNoSum(r *io.SectionReader) error {
	b := make([]byte, 1<<20)
	for at := int64(0); ; at += int64(len(b) - len(checksumMark) + 1) {
		n, err := r.ReadAt(b, at)
		switch {
		case bytes.Contains(b[:n], []byte(checksumMark)):
			return errChecksum
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
