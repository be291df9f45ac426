package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/pacer-ml/pacer/perfmodel/columnar"
)

// rowWriter writes rows to a file. Its memory is bounded. After an error the file is
// incomplete and only close may be called.
type rowWriter[T any] interface {
	write(row *T) error // keeps no reference to row
	// close writes buffered rows and completes the file, but does not close it.
	close() error
}

// newRowWriter begins a file of the given columns; layout names them in the
// metadata of a Parquet file.
func newRowWriter[T any](w io.Writer, f Format, layout string, columns []column[T]) (rowWriter[T], error) {
	if f == Parquet {
		return newParquetRows(w, layout, columns)
	}
	out := &csvRows[T]{csv.NewWriter(w), columns, make([]string, len(columns))}
	for i, c := range columns {
		out.row[i] = c.name
	}
	return out, out.w.Write(out.row)
}

type csvRows[T any] struct {
	w       *csv.Writer
	columns []column[T]
	row     []string
}

func (c *csvRows[T]) write(row *T) error {
	for i, col := range c.columns {
		c.row[i] = col.kind.csv(col.get(row))
	}
	return c.w.Write(c.row)
}

func (c *csvRows[T]) close() error {
	c.w.Flush()
	return c.w.Error()
}

// rowsPerGroup is the number of rows of a Parquet row group, and the most rows held
// in memory.
const rowsPerGroup = 65536

// layoutVersion is the version of the columns in FORMAT.md.
const layoutVersion = "1"

func (k kind) arrowType() arrow.DataType {
	switch k {
	case wholeKind:
		return arrow.PrimitiveTypes.Int64
	case numberKind, timeKind:
		return arrow.PrimitiveTypes.Float64
	}
	return arrow.BinaryTypes.String
}

// schemaOf returns the Arrow schema of a file; each field's metadata has its doc
// and unit.
func schemaOf[T any](layout string, columns []column[T]) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		meta := map[string]string{"doc": c.doc}
		if c.unit != "" {
			meta["unit"] = c.unit
		}
		fields[i] = arrow.Field{Name: c.name, Type: c.kind.arrowType(), Nullable: true, Metadata: arrow.MetadataFrom(meta)}
	}
	md := arrow.NewMetadata([]string{layout}, []string{layoutVersion})
	return arrow.NewSchema(fields, &md)
}

type parquetRows[T any] struct {
	to      *columnar.StickyWriter
	w       *pqarrow.FileWriter
	b       *array.RecordBuilder
	columns []column[T]
	rows    int // in b
}

func newParquetRows[T any](w io.Writer, layout string, columns []column[T]) (*parquetRows[T], error) {
	schema := schemaOf(layout, columns)
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithCreatedBy("pacer"))
	to := &columnar.StickyWriter{W: w}
	out, err := pqarrow.NewFileWriter(schema, to, props, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return nil, fmt.Errorf("report: parquet: %w", err)
	}
	return &parquetRows[T]{to: to, w: out, b: array.NewRecordBuilder(memory.NewGoAllocator(), schema), columns: columns}, nil
}

func (p *parquetRows[T]) write(row *T) error {
	for i, c := range p.columns {
		appendCell(p.b.Field(i), c.kind, c.get(row))
	}
	if p.rows++; p.rows < rowsPerGroup {
		return nil
	}
	return p.flush()
}

func appendCell(b array.Builder, k kind, v cell) {
	if v.null {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(v.s)
	case *array.Int64Builder:
		b.Append(v.n)
	case *array.Float64Builder:
		if k == timeKind {
			v.f = v.d.Seconds()
		}
		b.Append(v.f)
	}
}

// flush writes a row group.
func (p *parquetRows[T]) flush() error {
	rec := p.b.NewRecord()
	defer rec.Release()
	p.rows = 0
	return p.joinErrors(p.w.Write(rec))
}

// joinErrors returns err and the first error of the underlying writer, if any.
func (p *parquetRows[T]) joinErrors(err error) error {
	if err = errors.Join(p.to.Err, err); err != nil {
		return fmt.Errorf("report: parquet: %w", err)
	}
	return nil
}

func (p *parquetRows[T]) close() error {
	defer p.b.Release()
	if p.rows > 0 {
		if err := p.flush(); err != nil {
			return err
		}
	}
	return p.joinErrors(p.w.Close())
}
