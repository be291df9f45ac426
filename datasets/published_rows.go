package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Row is one row of a table in the format of the published ones.
type Row struct {
	Line int    // in its file, from 1
	ID   string // row_id
	// Measurement.Config is what the row describes. Read without outcomes the
	// rest is zero but for Source and Origin.
	Measurement spec.Measurement
	// Against is why the row did not run its Config, or contradicts itself.
	// Mismatch marks the worst of these: its plan is for another number of
	// devices than it has.
	Against  []string
	Mismatch bool
	// Assumed is what the Config has that the row does not record.
	Assumed []string
	// Doubts are further reasons not to believe the outcome. Measurement.Doubt
	// has all three, but for notes on what the source documents.
	Doubts []string
	// Header is what is odd about the table's header: columns that look like
	// known ones. With the first row alone. One that looks like the column rows
	// would be measured by is an error.
	Header []string
}

// OutcomeColumns are what was seen when a row's configuration was run, and what
// was remarked about that. The rest says what was run.
var OutcomeColumns = []string{"step_time_s", "throughput_value", "throughput_unit", "mfu", "tflops_per_gpu", "mem_gib", "status", "notes"}

// PublishedRows yields the rows of one table in the format of the published
// ones, in its order. name is for errors; where the table has no source column
// filled in, its stem says what the source is. Columns may come in any order,
// unknown ones are ignored, and what is missing or blank is not recorded.
//
// With outcomes, rows are read as the importer does, and need a step time, a
// throughput or memory. Without, OutcomeColumns are not looked at.
//
// A row that cannot be read yields a *RowError with the Line and, as far as it
// could be read, the ID; reading goes on. Any other error ends it.
func PublishedRows(ctx context.Context, name string, r io.Reader, outcomes bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		t := newPublishedTable(name)
		seen := map[string]int{}
		var visible map[string]int
		var odd []string
		for rec, err := range readCSV(r, name, publishedColumns...) {
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
					odd = oddColumns(rec.cols, outcomes)
				}
				rec.cols = visible
				row, err = t.Row(rec, outcomes, seen)
				row.Header, odd = odd, nil
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

// columns returns the columns of a table that may be read. With outcomes it is an
// error if there are none, or if one has another name, as if less had been measured.
func columns(rec *record, outcomes bool) (map[string]int, error) {
	visible := maps.Clone(rec.cols)
	if !outcomes {
		for _, c := range OutcomeColumns {
			delete(visible, c)
		}
		return visible, nil
	}
	for _, c := range []string{"step_time_s", "throughput_value", "mem_gib"} { // the first that is there says most
		if _, ok := visible[c]; ok {
			return visible, nil
		}
		if name := misspelt(rec.cols, c); name != "" {
			return nil, fmt.Errorf("column %q is not known, did you mean %s? As it is nothing of it would be read: rename it", name, c)
		}
	}
	return nil, errors.New("nothing measured: no column step_time_s, throughput_value or mem_gib")
}

// Row reads a row; seen has the lines of the IDs before it.
func (t *publishedTable) Row(rec *record, outcomes bool, seen map[string]int) (Row, error) {
	r := t.row(rec)
	row := Row{Line: rec.line, ID: r.m.Origin}
	if first, twice := seen[row.ID]; twice {
		r.fail("row_id", fmt.Errorf("is the row of line %d already", first))
		return row, rec.err()
	}
	seen[row.ID] = rec.line
	r.config()
	if outcomes {
		r.measure()
	}
	if rec.err() != nil {
		return row, rec.err()
	}
	row.Measurement, row.Against, row.Mismatch = r.m, r.against, r.mismatch
	row.Assumed, row.Doubts = slices.Concat(r.assumed, r.notes), r.doubts
	return row, nil
}

// publishedTable reads the rows of one table. What rows share is looked up
// once.
type publishedTable struct {
	stem    string
	sources map[string]*publishedSource
	models  map[modelCells]modelAnswer
	parts   map[string]spec.Accelerator
	shapes  map[[3]int]spec.Shape
	links   map[linkOf]spec.Link
	stacks  map[string]*publishedSource
	blank   map[int]string // what unrecorded says, by what is missing
}

// stack returns what a framework column says.
func (t *publishedTable) stack(name string) *publishedSource {
	s := t.stacks[name]
	if s == nil {
		s = stackOf(name)
		t.stacks[name] = s
	}
	return s
}

func newPublishedTable(name string) *publishedTable {
	return &publishedTable{stem: stem(name), sources: map[string]*publishedSource{}, models: map[modelCells]modelAnswer{},
		parts: map[string]spec.Accelerator{}, shapes: map[[3]int]spec.Shape{}, links: map[linkOf]spec.Link{},
		stacks: map[string]*publishedSource{}, blank: map[int]string{}}
}

// publishedRow is one row on its way to a measurement.
type publishedRow struct {
	*record
	table  *publishedTable
	source *publishedSource
	stack  string // training stack of its documents, whatever the device
	m      spec.Measurement

	batch      int  // global batch, 0 = not recorded
	batchKnown bool // the plan's batch is what the row says, not a stand-in
	mismatch   bool // the plan is for another number of devices
	against    []string
	assumed    []string
	notes      []string
	doubts     []string
}

// row begins to read a record.
func (t *publishedTable) row(rec *record) *publishedRow {
	r := &publishedRow{record: rec, table: t}
	r.m.Source, r.m.Origin = "published/"+t.stem, r.need("row_id")
	s := r.str("source")
	if r.source = t.sources[s]; r.source == nil {
		r.source = sourceOf(s, t.stem)
		t.sources[s] = r.source
	}
	return r
}

// wrong notes why another configuration ran than the row records.
func (r *publishedRow) wrong(format string, args ...any) {
	r.against = append(r.against, fmt.Sprintf(format, args...))
}

// assume notes a figure that is not recorded and may be wrong.
func (r *publishedRow) assume(format string, args ...any) {
	r.assumed = append(r.assumed, fmt.Sprintf(format, args...))
}

// note notes a figure that is not recorded but known well enough.
func (r *publishedRow) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// doubt notes a reason not to believe what was seen.
func (r *publishedRow) doubt(why string) { r.doubts = append(r.doubts, why) }
