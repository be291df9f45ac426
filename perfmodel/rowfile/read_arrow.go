package rowfile

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/pacer-ml/pacer/perfmodel/columnar"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ReadArrow is ReadParquet for the Arrow IPC file format.
func ReadArrow(path string) iter.Seq2[spec.Measurement, error] {
	return readFile(path, readArrow)
}

func readArrow(r *io.SectionReader, yield rowYield) error {
	if err := checkSum(r, arrowEnd); err != nil {
		return err
	}
	if err := checkArrowFooter(r); err != nil {
		return fmt.Errorf("not a whole Arrow file: %w", err)
	}
	f, err := ipc.NewFileReader(r, ipc.WithAllocator(columnar.Memory()))
	if err != nil {
		return fmt.Errorf("not a whole Arrow file: %w", err)
	}
	defer f.Close()
	at, err := arrowColumns(f.Schema())
	if err != nil {
		return err
	}
	for i := range f.NumRecords() {
		more, err := readRecord(f, i, at, yield)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// arrowColumns returns the index of each of our columns in s, -1 for a missing optional one.
func arrowColumns(s *arrow.Schema) ([]int, error) {
	at := make([]int, len(columns))
	for i, c := range columns {
		found := s.FieldIndices(c.name)
		switch {
		case len(found) == 0 && c.required:
			return nil, fmt.Errorf("column %q is missing", c.name)
		case len(found) == 0:
			at[i] = -1
		case len(found) > 1:
			return nil, fmt.Errorf("column %q occurs %d times, want once", c.name, len(found))
		default:
			at[i] = found[0]
		}
	}
	return at, nil
}

func readRecord(f *ipc.FileReader, i int, at []int, yield rowYield) (more bool, err error) {
	rec, err := f.RecordAt(i)
	if err != nil {
		return false, err
	}
	defer rec.Release()
	return recordRows(rec, at, yield)
}

// ReadRecord returns the rows of a record batch with the columns of Schema, as ReadArrow those of a file.
func ReadRecord(rec arrow.Record) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		at, err := arrowColumns(rec.Schema())
		if err == nil {
			err = columnar.Guard(func() error {
				_, err := recordRows(rec, at, yield)
				return err
			})
		}
		if err != nil {
			yield(spec.Measurement{}, fmt.Errorf("rowfile: %w", err))
		}
	}
}

// recordRows yields the rows of rec, with our columns at the indices at.
func recordRows(rec arrow.Record, at []int, yield rowYield) (more bool, err error) {
	readers := make([]arrayReader, len(columns))
	for k, c := range columns {
		if at[k] < 0 {
			continue
		}
		if readers[k], err = newArrayReader(c, rec.Column(at[k])); err != nil {
			return false, err
		}
	}
	for row := range int(rec.NumRows()) {
		var m spec.Measurement
		var bad error
		for k, c := range columns {
			if readers[k].value == nil {
				continue
			}
			v, err := readers[k].row(row)
			if err == nil {
				err = c.fill(&m, v, readers[k].float)
			}
			if err != nil && bad == nil {
				bad = err
			}
		}
		if !yield(m, bad) {
			return false, nil
		}
	}
	return true, nil
}

// arrayReader reads the values of an array; value is not called for nulls.
type arrayReader struct {
	arr   arrow.Array
	float bool // values are in cell.f
	value func(i int) (cell, error)
}

func (a arrayReader) row(i int) (cell, error) {
	if a.arr.IsNull(i) {
		return cell{null: true}, nil
	}
	return a.value(i)
}

func newArrayReader(c column, arr arrow.Array) (arrayReader, error) {
	var a arrayReader
	switch c.kind {
	case textKind:
		a = textReader(arr)
	case wholeKind, numberKind:
		a = numberReader(arr)
	case flagKind:
		if arr, ok := arr.(*array.Boolean); ok {
			a.value = func(i int) (cell, error) {
				if arr.Value(i) {
					return cell{n: 1}, nil
				}
				return cell{}, nil
			}
		}
	case timeKind:
		a = timeReader(arr)
	case listKind:
		a = listReader(arr)
	}
	if a.value == nil {
		return a, fmt.Errorf("column %q is %s, want %s", c.name, arr.DataType(), c.kind)
	}
	a.arr = arr
	return a, nil
}

func textReader(arr arrow.Array) (a arrayReader) {
	switch arr := arr.(type) {
	case *array.String:
		a.value = func(i int) (cell, error) { return cell{s: string([]byte(arr.Value(i)))}, nil }
	case *array.LargeString:
		a.value = func(i int) (cell, error) { return cell{s: string([]byte(arr.Value(i)))}, nil }
	case *array.Dictionary:
		if words := textReader(arr.Dictionary()); words.value != nil {
			a.value = func(i int) (cell, error) { return words.value(arr.GetValueIndex(i)) }
		}
	}
	return a
}

func numberReader(arr arrow.Array) (a arrayReader) {
	switch arr := arr.(type) {
	case *array.Int64:
		a.value = func(i int) (cell, error) { return cell{n: arr.Value(i)}, nil }
	case *array.Int32:
		a.value = func(i int) (cell, error) { return cell{n: int64(arr.Value(i))}, nil }
	case *array.Int16:
		a.value = func(i int) (cell, error) { return cell{n: int64(arr.Value(i))}, nil }
	case *array.Int8:
		a.value = func(i int) (cell, error) { return cell{n: int64(arr.Value(i))}, nil }
	case *array.Float32:
		a = arrayReader{float: true, value: func(i int) (cell, error) { return cell{f: float64(arr.Value(i))}, nil }}
	case *array.Float64:
		a = arrayReader{float: true, value: func(i int) (cell, error) { return cell{f: arr.Value(i)}, nil }}
	}
	return a
}

func timeReader(arr arrow.Array) (a arrayReader) {
	if arr, ok := arr.(*array.Timestamp); ok {
		scale := int64(arr.DataType().(*arrow.TimestampType).Unit.Multiplier())
		a.value = func(i int) (cell, error) { return cell{n: int64(arr.Value(i)) * scale}, nil }
	}
	return a
}

func listReader(arr arrow.Array) (a arrayReader) {
	list, ok := arr.(array.ListLike)
	if !ok {
		return a
	}
	items := numberReader(list.ListValues())
	if items.value == nil {
		return a
	}
	items.arr = list.ListValues()
	a.value = func(i int) (cell, error) {
		var out cell
		for k, end := list.ValueOffsets(i); k < end; k++ {
			v, err := items.row(int(k))
			if err != nil {
				return cell{}, err
			}
			if v.null {
				return cell{}, errors.New("a list contains a null")
			}
			if !items.float {
				v.f = float64(v.n)
			}
			out.fs = append(out.fs, v.f)
		}
		return out, nil
	}
	return a
}
