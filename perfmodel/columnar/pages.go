package columnar

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/schema"
)

var errPage = errors.New("a page is damaged")

// checkedPages checks each page before the Parquet library decodes it. If a page has fewer levels than its
// header declares, the library would wait for them forever.
type checkedPages struct {
	file.PageReader
	col *schema.Column
	err error
}

// Next implements file.PageReader.
func (p *checkedPages) Next() bool {
	if p.err != nil || !p.PageReader.Next() {
		return false
	}
	if !p.whole(p.Page()) {
		p.err = errPage
	}
	return p.err == nil
}

// Err implements file.PageReader.
func (p *checkedPages) Err() error {
	if p.err != nil {
		return p.err
	}
	return p.PageReader.Err()
}

// whole reports whether a data page has as many levels as values.
func (p *checkedPages) whole(page file.Page) bool {
	rep, def := p.col.MaxRepetitionLevel(), p.col.MaxDefinitionLevel()
	n := int(page.NumValues())
	switch page := page.(type) {
	case *file.DataPageV1:
		b := page.Data()
		b, ok := cutLevels(b, rep, page.RepetitionLevelEncoding(), n)
		if ok {
			_, ok = cutLevels(b, def, page.DefinitionLevelEncoding(), n)
		}
		return ok && n >= 0
	case *file.DataPageV2:
		b, r, d := page.Data(), int(page.RepetitionLevelByteLen()), int(page.DefinitionLevelByteLen())
		if n < 0 || r < 0 || d < 0 || r+d > len(b) {
			return false
		}
		return (rep == 0 || countRuns(b[:r], rep, n)) && (def == 0 || countRuns(b[r:r+d], def, n))
	}
	return n >= 0
}

// cutLevels checks the levels at the start of a page of version 1, and returns the bytes after them.
func cutLevels(b []byte, maxLevel int16, enc parquet.Encoding, n int) (rest []byte, ok bool) {
	if maxLevel == 0 {
		return b, true
	}
	if enc != parquet.Encodings.RLE {
		size := (n*bits.Len16(uint16(maxLevel)) + 7) / 8
		if n < 0 || size > len(b) {
			return nil, false
		}
		return b[size:], true
	}
	if len(b) < 4 {
		return nil, false
	}
	size := int64(binary.LittleEndian.Uint32(b))
	if b = b[4:]; size > int64(len(b)) {
		return nil, false
	}
	return b[size:], countRuns(b[:size], maxLevel, n)
}

// countRuns reports whether b holds n levels in runs. A run is a header and its levels: if the header's lowest
// bit is set, the other bits count groups of eight packed levels; otherwise they count repetitions of one
// level.
func countRuns(b []byte, maxLevel int16, n int) bool {
	width := bits.Len16(uint16(maxLevel))
	for have := 0; have < n; {
		head, k := binary.Uvarint(b)
		if k <= 0 || head>>1 == 0 || head>>1 > 1<<31 {
			return false
		}
		count, size := int(head>>1), (width+7)/8
		if head&1 == 1 {
			count, size = count*8, count*width
		}
		if b = b[k:]; size > len(b) {
			return false
		}
		have, b = have+count, b[size:]
	}
	return true
}
