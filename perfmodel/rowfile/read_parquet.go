package rowfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/schema"

	"github.com/pacer-ml/pacer/perfmodel/columnar"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ReadParquet returns the rows of a file written by WriteParquet or in the same layout. FORMAT.md lists the
// required columns; unknown columns are ignored. An invalid row gives an error with file and row, and reading
// continues; a damaged file gives an error and ends. Each measurement belongs to the caller.
func ReadParquet(path string) iter.Seq2[spec.Measurement, error] {
	return readFile(path, readParquet)
}

// ReadParquetFrom is ReadParquet for size bytes of r; name is used in errors.
func ReadParquetFrom(name string, r io.ReaderAt, size int64) iter.Seq2[spec.Measurement, error] {
	return readRows(name, r, size, readParquet)
}

// RowsOfParquet returns the rows of a file in memory; name is used in errors, and the first one ends it.
func RowsOfParquet(name string, file []byte) (rows []spec.Measurement, err error) {
	for m, err := range ReadParquetFrom(name, bytes.NewReader(file), int64(len(file))) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, m)
	}
	return rows, nil
}

// rowYield receives a row or its error, and returns whether to continue.
type rowYield func(m spec.Measurement, err error) bool

// rowReader passes the rows of a file to yield; its error is about the file.
type rowReader func(r *io.SectionReader, yield rowYield) error

func readFile(path string, read rowReader) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(spec.Measurement{}, fmt.Errorf("rowfile: %w", err))
			return
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			yield(spec.Measurement{}, fmt.Errorf("rowfile: %w", err))
			return
		}
		readRows(path, f, info.Size(), read)(yield)
	}
}

func readRows(name string, r io.ReaderAt, size int64, read rowReader) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		n, stopped := 0, false
		var fault any // a panic of the caller's loop, not of the library
		pass := recordPanic(&fault, yield)
		err := columnar.Guard(func() error {
			return read(io.NewSectionReader(r, 0, size), func(m spec.Measurement, err error) bool {
				n++
				if err == nil {
					err = check(&m)
				}
				if err != nil {
					m, err = spec.Measurement{}, fmt.Errorf("rowfile: %s: row %d: %w", name, n, err)
				}
				stopped = !pass(m, err)
				return !stopped
			})
		})
		if fault != nil {
			panic(fault)
		}
		if err != nil && !stopped {
			yield(spec.Measurement{}, fmt.Errorf("rowfile: %s: after row %d: %w", name, n, err))
		}
	}
}

// recordPanic calls yield and stores its panic, if any, in fault.
func recordPanic(fault *any, yield func(spec.Measurement, error) bool) func(spec.Measurement, error) bool {
	return func(m spec.Measurement, err error) bool {
		defer func() {
			if *fault = recover(); *fault != nil {
				panic(*fault)
			}
		}()
		return yield(m, err)
	}
}

func readParquet(r *io.SectionReader, yield rowYield) error {
	if err := checkSum(r, parquetEnd); err != nil {
		return err
	}
	f, err := columnar.OpenParquet(r)
	if err != nil {
		return err
	}
	leaves, err := parquetColumns(f.MetaData().Schema)
	if err != nil {
		return err
	}
	for i := range f.NumRowGroups() {
		more, err := readRowGroup(f, f.RowGroup(i), leaves, yield)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// parquetColumns returns the leaf of each of our columns in s, -1 for a missing optional one.
func parquetColumns(s *schema.Schema) ([]int, error) {
	byName := map[string]int{}
	for i := range s.NumColumns() {
		name := s.Column(i).ColumnPath()[0]
		if _, twice := byName[name]; twice {
			byName[name] = -1 // a structure, or two columns with this name
			continue
		}
		byName[name] = i
	}
	leaves := make([]int, len(columns))
	for i, c := range columns {
		leaf, ok := byName[c.name]
		switch {
		case !ok && c.required:
			return nil, fmt.Errorf("column %q is missing", c.name)
		case !ok:
			leaves[i] = -1
			continue
		case leaf < 0:
			return nil, fmt.Errorf("column %q is not one column of %s", c.name, c.kind)
		}
		if err := c.checkParquet(s.Column(leaf)); err != nil {
			return nil, err
		}
		leaves[i] = leaf
	}
	return leaves, nil
}

func (c column) checkParquet(d *schema.Column) error {
	ok := false
	switch d.PhysicalType() {
	case parquet.Types.ByteArray:
		ok = c.kind == textKind
	case parquet.Types.Boolean:
		ok = c.kind == flagKind
	case parquet.Types.Int64:
		_, stamp := d.LogicalType().(*schema.TimestampLogicalType)
		ok = stamp == (c.kind == timeKind) && c.kind != textKind && c.kind != flagKind
	case parquet.Types.Int32, parquet.Types.Float, parquet.Types.Double:
		ok = c.kind == wholeKind || c.kind == numberKind || c.kind == listKind
	}
	if c.kind == listKind {
		ok = ok && d.MaxRepetitionLevel() == 1
	} else {
		ok = ok && len(d.ColumnPath()) == 1 && d.MaxRepetitionLevel() == 0
	}
	if !ok {
		return fmt.Errorf("column %q is %s at %s, want %s", c.name, d.PhysicalType(), d.Path(), c.kind)
	}
	return nil
}

func readRowGroup(f *file.Reader, g *file.RowGroupReader, leaves []int, yield rowYield) (more bool, err error) {
	var readers []*leafReader
	for i, leaf := range leaves {
		if leaf < 0 {
			continue
		}
		rd, err := columnar.Chunk(f, g, leaf)
		if err != nil {
			return false, fmt.Errorf("column %q: %w", columns[i].name, err)
		}
		readers = append(readers, newLeafReader(columns[i], rd))
	}
	for range g.NumRows() {
		var m spec.Measurement
		var bad error
		for _, l := range readers {
			v, err := l.row()
			if err != nil {
				return false, fmt.Errorf("column %q: %w", l.col.name, err)
			}
			if err := l.col.fill(&m, v, l.float); err != nil && bad == nil {
				bad = err
			}
		}
		if !yield(m, bad) {
			return false, nil
		}
	}
	return true, nil
}

// leafBatch is the number of levels of a column decoded at a time.
const leafBatch = 512

// leafReader reads a leaf column row by row.
type leafReader struct {
	col      column
	float    bool // values are in cell.f
	maxDef   int16
	nullItem int16 // definition level of a null inside a list, -1 if nulls are impossible

	read  func() (levels int64, values int, err error)
	value func(i int) cell

	def, rep              []int16
	level, levels, values int // next level; number of decoded levels and values
	next                  int // next value
}

func newLeafReader(c column, rd file.ColumnChunkReader) *leafReader {
	d := rd.Descriptor()
	l := &leafReader{col: c, maxDef: d.MaxDefinitionLevel(), nullItem: -1, def: make([]int16, leafBatch), rep: make([]int16, leafBatch)}
	if c.kind == listKind && d.SchemaNode().RepetitionType() == parquet.Repetitions.Optional {
		l.nullItem = l.maxDef - 1
	}
	switch rd := rd.(type) {
	case *file.ByteArrayColumnChunkReader:
		bind(l, rd, func(v parquet.ByteArray) cell { return cell{s: string(v)} })
	case *file.BooleanColumnChunkReader:
		bind(l, rd, func(v bool) cell {
			if v {
				return cell{n: 1}
			}
			return cell{}
		})
	case *file.Int32ColumnChunkReader:
		bind(l, rd, func(v int32) cell { return cell{n: int64(v)} })
	case *file.Int64ColumnChunkReader:
		scale := timestampScale(d)
		bind(l, rd, func(v int64) cell { return cell{n: v * scale} })
	case *file.Float32ColumnChunkReader:
		l.float = true
		bind(l, rd, func(v float32) cell { return cell{f: float64(v)} })
	case *file.Float64ColumnChunkReader:
		l.float = true
		bind(l, rd, func(v float64) cell { return cell{f: v} })
	}
	return l
}

// timestampScale returns the nanoseconds of one unit of a timestamp column, 1
// for other columns.
func timestampScale(d *schema.Column) int64 {
	if t, ok := d.LogicalType().(*schema.TimestampLogicalType); ok {
		switch t.TimeUnit() {
		case schema.TimeUnitMillis:
			return 1e6
		case schema.TimeUnitMicros:
			return 1e3
		}
	}
	return 1
}

// batchReader is the typed part of a column chunk reader.
type batchReader[T any] interface {
	ReadBatch(batch int64, values []T, def, rep []int16) (total int64, valuesRead int, err error)
}

func bind[T any, R batchReader[T]](l *leafReader, rd R, convert func(T) cell) {
	buf := make([]T, leafBatch)
	l.read = func() (int64, int, error) { return rd.ReadBatch(leafBatch, buf, l.def, l.rep) }
	l.value = func(i int) cell { return convert(buf[i]) }
}

// more decodes the next levels if necessary; io.EOF means that the column has ended.
func (l *leafReader) more() error {
	if l.level < l.levels {
		return nil
	}
	levels, values, err := l.read()
	if err != nil {
		return err
	}
	if levels == 0 {
		return io.EOF
	}
	l.level, l.levels, l.values, l.next = 0, int(levels), values, 0
	return nil
}

// item returns the value of the next level.
func (l *leafReader) item() (cell, error) {
	def := l.def[l.level]
	l.level++
	if def != l.maxDef {
		if def == l.nullItem {
			return cell{}, errors.New("a list contains a null")
		}
		return cell{null: true}, nil
	}
	if l.next >= l.values {
		return cell{}, errors.New("fewer values than its levels declare")
	}
	l.next++
	return l.value(l.next - 1), nil
}

// row returns the value of the next row.
func (l *leafReader) row() (cell, error) {
	if err := l.more(); err != nil {
		if err == io.EOF {
			err = errors.New("fewer rows than the file declares")
		}
		return cell{}, err
	}
	v, err := l.item()
	if err != nil || l.col.kind != listKind || v.null {
		return v, err
	}
	list := cell{fs: []float64{l.asFloat(v)}}
	for {
		err := l.more()
		if err == io.EOF || err == nil && l.rep[l.level] == 0 {
			return list, nil
		}
		if err != nil {
			return cell{}, err
		}
		if v, err = l.item(); err != nil {
			return cell{}, err
		}
		list.fs = append(list.fs, l.asFloat(v))
	}
}

func (l *leafReader) asFloat(v cell) float64 {
	switch {
	case v.null:
		return math.NaN()
	case l.float:
		return v.f
	}
	return float64(v.n)
}
