package columnar

import (
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
)

// Guard calls read and turns a panic in it, as the Arrow library raises for a damaged file, into an error.
func Guard(read func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	return read()
}

// Memory returns an allocator that panics on a buffer of more than 1 GiB, for Guard to recover: no undamaged
// file needs one.
func Memory() memory.Allocator { return &limitedMemory{} }

type limitedMemory struct{ memory.GoAllocator }

const maxAllocation = 1 << 30

// Allocate implements memory.Allocator.
func (a *limitedMemory) Allocate(size int) []byte {
	return a.GoAllocator.Allocate(checkSize(size))
}

// Reallocate implements memory.Allocator.
func (a *limitedMemory) Reallocate(size int, b []byte) []byte {
	return a.GoAllocator.Reallocate(checkSize(size), b)
}

func checkSize(size int) int {
	if size < 0 || size > maxAllocation {
		panic(fmt.Sprintf("it needs a buffer of %d bytes", size))
	}
	return size
}

// OpenParquet reads the footer of a Parquet file. The caller closes the Reader.
func OpenParquet(r *io.SectionReader) (*file.Reader, error) {
	f, err := file.NewParquetReader(r, file.WithReadProps(parquet.NewReaderProperties(Memory())))
	if err != nil {
		return nil, fmt.Errorf("not a whole Parquet file: %w", err)
	}
	return f, nil
}

// Chunk returns a reader of a leaf column in a row group of f. Its pages are checked before they are decoded.
func Chunk(f *file.Reader, group *file.RowGroupReader, leaf int) (file.ColumnChunkReader, error) {
	pages, err := group.GetColumnPageReader(leaf)
	if err != nil {
		return nil, err
	}
	col := f.MetaData().Schema.Column(leaf)
	return file.NewColumnReader(col, &checkedPages{PageReader: pages, col: col}, Memory(), f.BufferPool()), nil
}
