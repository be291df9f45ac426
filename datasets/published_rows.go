package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"

	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Row is one row of a table in the published format.
type Row struct {
	Line int    // in its file, from 1
	ID   string // row_id
	// Measurement.Config is the configuration of the row. Read without outcomes, only Source and
	// Origin are set besides.
	Measurement spec.Measurement
	// Against lists why the row did not run its Config, or contradicts itself. Mismatch marks the
	// worst case: the plan is for another number of devices.
	Against  []string
	Mismatch bool
	// Assumed lists the values of the Config that the row does not record.
	Assumed []string
	// Unrecorded names the blank columns of settings that memory depends on, separated by commas, see
	// memory.Alternatives.
	Unrecorded string
	// Doubts are further reasons to doubt the outcome. Measurement.Doubt joins Against, Assumed and
	// Doubts, but leaves out notes on values that the source documents.
	Doubts []string
	// Header lists unknown columns of the header; set for the first row only. It is an error if one
	// resembles a missing column of measured values.
	Header []string
}

// OutcomeColumns are the columns with results. The others describe the configuration. Of the notes, which remark on
// both, a configuration is read only by fixed patterns: the release and the rank of an adapter.
var OutcomeColumns = []string{"step_time_s", "throughput_value", "throughput_unit", "mfu", "tflops_per_gpu", "mem_gib", "mem_kind", "status", "measured_at"}

// PublishedRows yields the rows of one table in the published format, in order. name is for errors;
// without a source column its stem identifies the source. Columns may be in any order, unknown ones
// are ignored, and missing or blank cells are not recorded. Column config names files of beside; nil = none
// can be read.
//
// With outcomes, rows are read as by the importer, and need a step time, a throughput or memory.
// Without outcomes, OutcomeColumns are ignored.
//
// An invalid row yields a *RowError with Line and, if possible, ID; reading continues. Any other
// error ends it.
func PublishedRows(ctx context.Context, name string, r io.Reader, beside fs.FS, outcomes bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		t := newPublishedTable(name)
		t.beside = beside
		seen := map[string]int{}
		var visible map[string]int
		var unknown []string
		for rec, err := range table.Read(r, name, publishedColumns...) {
			if cerr := ctx.Err(); cerr != nil {
				yield(Row{}, cerr)
				return
			}
			var row Row
			if err == nil {
				if visible == nil {
					if visible, err = columns(rec, outcomes); err != nil {
						yield(Row{}, fmt.Errorf("datasets: %s: %w", name, err))
						return
					}
					unknown = unknownColumns(rec.Cols, outcomes)
				}
				rec.Cols = visible
				row, err = t.Row(rec, outcomes, seen)
				row.Header, unknown = unknown, nil
			}
			var bad *RowError
			if errors.As(err, &bad) {
				row.Line = bad.Line
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// columns returns the columns of a table to read. With outcomes, a table without an outcome column or
// with a misspelt one is an error, because measurements would be lost.
func columns(rec *table.Record, outcomes bool) (map[string]int, error) {
	visible := maps.Clone(rec.Cols)
	if !outcomes {
		for _, c := range OutcomeColumns {
			delete(visible, c)
		}
		return visible, nil
	}
	for _, c := range []string{"step_time_s", "throughput_value", "mem_gib"} { // the most informative first
		if _, ok := visible[c]; ok {
			return visible, nil
		}
		if name := misspelt(rec.Cols, c); name != "" {
			return nil, fmt.Errorf("column %q is not known, did you mean %s? Rename it: its values would be ignored", name, c)
		}
	}
	return nil, errors.New("nothing measured: no column step_time_s (seconds), throughput_value or mem_gib (GiB)")
}

// Row reads a row; seen has the lines of earlier IDs.
func (t *publishedTable) Row(rec *table.Record, outcomes bool, seen map[string]int) (Row, error) {
	r := t.row(rec)
	row := Row{Line: rec.Line, ID: r.m.Origin}
	if first, twice := seen[row.ID]; twice {
		r.Fail("row_id", fmt.Errorf("is the row of line %d already", first))
		return row, rec.Err()
	}
	seen[row.ID] = rec.Line
	r.config()
	if outcomes {
		r.measure()
	}
	if rec.Err() != nil {
		return row, rec.Err()
	}
	row.Measurement, row.Against, row.Mismatch = r.m, r.against, r.mismatch
	row.Assumed, row.Doubts, row.Unrecorded = slices.Concat(r.assumed, r.notes), r.doubts, r.blank
	return row, nil
}

// publishedTable reads the rows of one table and caches what rows share.
type publishedTable struct {
	stem         string
	beside       fs.FS // the folder of the table, nil if it is not known
	sources      map[string]*publishedSource
	models       map[modelCells]modelMatch
	accelerators map[string]spec.Accelerator
	shapes       map[[3]int]spec.Shape
	links        map[linkOf]spec.Link
	stacks       map[stackText]statedStack
	blank        map[int]string // notes of unrecorded, by bit set of missing columns
}

func newPublishedTable(name string) *publishedTable {
	return &publishedTable{stem: table.Stem(name), sources: map[string]*publishedSource{}, models: map[modelCells]modelMatch{},
		accelerators: map[string]spec.Accelerator{}, shapes: map[[3]int]spec.Shape{}, links: map[linkOf]spec.Link{},
		stacks: map[stackText]statedStack{}, blank: map[int]string{}}
}

// publishedRow is a row being converted to a measurement.
type publishedRow struct {
	*table.Record
	table  *publishedTable
	source *publishedSource
	recipe *recipe // of the source about this row, nil = none
	stack  string  // name of the training stack
	m      spec.Measurement

	batch      int  // global batch, 0 = not recorded
	batchKnown bool // the plan has the batch of the row, not an assumed one
	mismatch   bool // the plan is for another number of devices
	against    []string
	assumed    []string
	notes      []string
	doubts     []string
	blank      string // names of blank optional columns, separated by commas
}

// row starts to read a record.
func (t *publishedTable) row(rec *table.Record) *publishedRow {
	r := &publishedRow{Record: rec, table: t}
	r.m.Source, r.m.Origin = "published/"+t.stem, r.Need("row_id")
	s := r.Str("source")
	if r.source = t.sources[s]; r.source == nil {
		r.source = sourceOf(s, t.stem)
		t.sources[s] = r.source
	}
	r.recipe = r.findRecipe()
	return r
}

// wrong notes why the run had another configuration than the row records.
func (r *publishedRow) wrong(format string, args ...any) {
	r.against = append(r.against, fmt.Sprintf(format, args...))
}

// assume notes a figure that is not recorded and may be wrong.
func (r *publishedRow) assume(format string, args ...any) {
	r.assumed = append(r.assumed, fmt.Sprintf(format, args...))
}

// note notes a figure that is not recorded but well known.
func (r *publishedRow) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// doubt notes a reason to doubt the outcome.
func (r *publishedRow) doubt(why string) { r.doubts = append(r.doubts, why) }
