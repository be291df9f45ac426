package rowfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/pacer-ml/pacer/perfmodel/columnar"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// rowsPerBatch is the number of rows of an Arrow record batch or Parquet row group. One batch is in memory at a
// time.
const rowsPerBatch = 8192

// Metadata that marks exported files, with their layout version.
const (
	layoutKey     = "pacer.measurements"
	layoutVersion = "1"
)

func (k kind) arrowType() arrow.DataType {
	switch k {
	case wholeKind:
		return arrow.PrimitiveTypes.Int64
	case numberKind:
		return arrow.PrimitiveTypes.Float64
	case flagKind:
		return arrow.FixedWidthTypes.Boolean
	case timeKind:
		return arrow.FixedWidthTypes.Timestamp_ns
	case listKind:
		return arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float64)
	}
	return arrow.BinaryTypes.String
}

// Schema returns the Arrow schema of exported files. The metadata of each field has its documentation, and its
// unit if any.
func Schema() *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		meta := map[string]string{"doc": c.doc}
		if c.unit != "" {
			meta["unit"] = c.unit
		}
		fields[i] = arrow.Field{Name: c.name, Type: c.kind.arrowType(), Nullable: !c.required, Metadata: arrow.MetadataFrom(meta)}
	}
	md := arrow.NewMetadata([]string{layoutKey}, []string{layoutVersion})
	return arrow.NewSchema(fields, &md)
}

// WriteParquet writes the rows of seq as one Parquet file, compressed with zstd, with a checksum that ReadParquet
// compares, and returns their number. It
// stops at the first error of seq, and at a row that Check refuses; the bytes written until then are not a
// valid file. It does not close w.
func WriteParquet(w io.Writer, seq iter.Seq2[spec.Measurement, error]) (n int, err error) {
	return writeParquet(w, seq, compress.Codecs.Zstd)
}

func writeParquet(w io.Writer, seq iter.Seq2[spec.Measurement, error], codec compress.Compression) (n int, err error) {
	props := parquet.NewWriterProperties(parquet.WithCompression(codec), parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithCreatedBy("pacer"))
	summed := newSummedWriter(w)
	to := &columnar.StickyWriter{W: summed}
	out, err := pqarrow.NewFileWriter(Schema(), to, props, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return 0, fmt.Errorf("rowfile: parquet: %w", err)
	}
	n, err = writeBatches(func(rec arrow.Record) error { return errors.Join(out.Write(rec), to.Err) }, seq)
	if err != nil {
		return n, fmt.Errorf("rowfile: parquet: %w", err)
	}
	summed.hold()
	if err = errors.Join(out.Close(), to.Err); err == nil {
		err = summed.end(parquetEnd)
	}
	if err != nil {
		return n, fmt.Errorf("rowfile: parquet: %w", err)
	}
	return n, nil
}

// WriteArrow is WriteParquet for the Arrow IPC file format ("Feather v2"), with buffers compressed with zstd.
func WriteArrow(w io.Writer, seq iter.Seq2[spec.Measurement, error]) (n int, err error) {
	summed := newSummedWriter(w)
	out, err := ipc.NewFileWriter(&position{Writer: summed}, ipc.WithSchema(Schema()), ipc.WithZstd())
	if err != nil {
		return 0, fmt.Errorf("rowfile: arrow: %w", err)
	}
	if n, err = writeBatches(out.Write, seq); err != nil {
		return n, fmt.Errorf("rowfile: arrow: %w", err)
	}
	summed.hold()
	if err = out.Close(); err == nil {
		err = summed.end(arrowEnd)
	}
	if err != nil {
		return n, fmt.Errorf("rowfile: arrow: %w", err)
	}
	return n, nil
}

// position reports the offset to the IPC writer, which seeks for no other purpose.
type position struct {
	io.Writer
	n int64
}

func (p *position) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	p.n += int64(n)
	return n, err
}

func (p *position) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.New("cannot seek")
	}
	return p.n, nil
}

// writeBatches collects the rows of seq into record batches of a file.
func writeBatches(write func(arrow.Record) error, seq iter.Seq2[spec.Measurement, error]) (n int, err error) {
	return Batches(write, rowsPerBatch, seq)
}

// maxBatchSteps is the number of step times from which a batch of Batches is full: 512 KiB of them.
const maxBatchSteps = 1 << 16

// Batches calls write with the rows of seq as record batches of Schema, of up to most rows, and returns the number of
// rows. Batches with many step times are smaller. It stops at the first error of seq, and at a row that Check refuses.
// write must not keep its record.
func Batches(write func(arrow.Record) error, most int, seq iter.Seq2[spec.Measurement, error]) (n int, err error) {
	b := NewBatcher(write, most)
	for m, err := range seq {
		if err == nil {
			err = cmp.Or(checkTexts(&m), checkNumbers(&m))
		}
		if err != nil {
			return b.n, fmt.Errorf("row %d: %w", b.n+1, err)
		}
		if err := b.Add(&m); err != nil {
			return b.n, err
		}
	}
	err = b.Flush()
	return b.n, err
}

// Batcher collects rows into record batches, as Batches does. Unlike Batches it takes texts for valid and numbers for
// finite, as those of rows from JSON are.
type Batcher struct {
	write        func(arrow.Record) error
	most         int // rows of a batch
	columns      *recordBuilder
	rows         []spec.Measurement // not in columns yet
	n            int                // rows until now
	batch, steps int                // rows and step times of the batch
}

// NewBatcher returns a Batcher that calls write with record batches of up to most rows.
func NewBatcher(write func(arrow.Record) error, most int) *Batcher {
	return &Batcher{write: write, most: most, columns: newRecordBuilder(most), rows: make([]spec.Measurement, 0, rowsAtOnce)}
}

// Rows returns the number of rows until now.
func (b *Batcher) Rows() int { return b.n }

// Add adds a row.
func (b *Batcher) Add(m *spec.Measurement) error {
	if err := checkDecoded(m); err != nil {
		return fmt.Errorf("row %d: %w", b.n+1, err)
	}
	b.rows = append(b.rows, *m)
	b.n++
	b.batch++
	b.steps += len(m.StepSec)
	switch {
	case b.batch == b.most || b.steps >= maxBatchSteps:
		return b.Flush()
	case len(b.rows) == rowsAtOnce:
		return b.fill()
	}
	return nil
}

// fill adds the rows to the columns.
func (b *Batcher) fill() error {
	if at, err := b.columns.add(b.rows); err != nil {
		b.n += at - len(b.rows)
		return fmt.Errorf("row %d: %w", b.n+1, err)
	}
	b.rows = b.rows[:0]
	return nil
}

// Flush writes the batch, if there is one.
func (b *Batcher) Flush() error {
	if b.batch == 0 {
		return nil
	}
	if err := b.fill(); err != nil {
		return err
	}
	rec := b.columns.record()
	defer rec.Release()
	b.batch, b.steps = 0, 0
	return b.write(rec)
}

// rowsAtOnce is the number of rows that are added column by column: they are in the processor's cache.
const rowsAtOnce = 64

// run is n rows with an equal part.
type run struct{ first, n int }

// runsOf returns the runs of each part of rows.
func runsOf(rows []spec.Measurement) (out [numParts][]run) {
	for i := range rows {
		for p := range out {
			if i > 0 && part(p).same(&rows[i], &rows[i-1]) {
				out[p][len(out[p])-1].n++
			} else {
				out[p] = append(out[p], run{i, 1})
			}
		}
	}
	return out
}
