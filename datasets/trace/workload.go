package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Workload is a job trace.
type Workload struct {
	Format string     // the format it was in
	Jobs   []spec.Job // by submission, then in file order
	Bad    []error    // a *table.RowError for each invalid row
	// Warnings are notes on the trace: columns that are not read, rows without a job to schedule,
	// jobs out of order.
	Warnings []error
	// Began is when the first job was submitted, zero if the trace has no dates. Dates without a
	// time zone are taken as UTC.
	Began time.Time
}

// ErrNoJob marks valid rows without a job to schedule: no devices, or no run time. It is wrapped in
// a *table.RowError.
var ErrNoJob = errors.New("no job to schedule")

// ErrNote marks a remark on a trace that is read anyway: columns that are not read, shares of
// devices that are rounded up. It is wrapped in a *table.RowError.
var ErrNote = errors.New("note")

// rowNote is an error of one of these kinds; equal ones are counted together.
type rowNote struct {
	kind error
	why  string
}

func (n rowNote) Error() string { return n.why }
func (n rowNote) Unwrap() error { return n.kind }

// Open reads the job trace at path, a file or a directory of tables. Gzip and tar archives are
// unpacked. format is one of FormatNames, or "" to detect it. Invalid rows are in Workload.Bad, each
// with line, column and value; see also ErrNoJob and ErrNote. It fails if the format is unknown or the
// trace cannot be read.
func Open(ctx context.Context, path, format string) (Workload, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return Workload{}, fmt.Errorf("datasets: %w", err)
	}
	return readInput(&input{ctx: ctx, root: os.DirFS(filepath.Dir(full)), path: filepath.Base(full), name: path}, format)
}

func readInput(in *input, format string) (Workload, error) {
	if err := in.open(format); err != nil {
		return Workload{}, err
	}
	defer in.close()
	w := Workload{Format: in.format.name}
	if err := w.collect(in); err != nil {
		return Workload{}, err
	}
	w.Jobs = bySubmission(w.Jobs)
	if in.format.dated && len(w.Jobs) > 0 {
		first := w.Jobs[0].Submit
		w.Began = time.Unix(0, int64(first)).UTC()
		for i := range w.Jobs {
			w.Jobs[i].Submit -= first
		}
	}
	return w, nil
}

// bySubmission returns the jobs by submission, then in file order. It sorts indices, since jobs are
// large.
func bySubmission(jobs []spec.Job) []spec.Job {
	if slices.IsSortedFunc(jobs, func(a, b spec.Job) int { return cmp.Compare(a.Submit, b.Submit) }) {
		return jobs
	}
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(jobs[a].Submit, jobs[b].Submit), cmp.Compare(a, b)) })
	out := make([]spec.Job, len(jobs))
	for i, from := range order {
		out[i] = jobs[from]
	}
	return out
}

// collect reads all jobs in the order of the file.
func (w *Workload) collect(in *input) error {
	var notes countNotes
	early, example := 0, ""
	for j, err := range in.jobs() {
		var row *table.RowError
		var note rowNote
		switch {
		case err == nil:
			if n := len(w.Jobs); n > 0 && j.Submit < w.Jobs[n-1].Submit {
				if early++; early == 1 {
					example = fmt.Sprintf("%s %v before %s", j.ID, w.Jobs[n-1].Submit-j.Submit, w.Jobs[n-1].ID)
				}
			}
			w.Jobs = append(w.Jobs, j)
		case !errors.As(err, &row):
			return err
		case errors.As(err, &note):
			notes.add(row, note.why)
		default:
			w.Bad = append(w.Bad, err)
		}
	}
	w.Warnings = notes.errors()
	if early > 0 {
		w.Warnings = append(w.Warnings, fmt.Errorf("datasets: %s: jobs out of order: %d, first %s; all are sorted by submission", in.name, early, example))
	}
	return nil
}

// countNotes counts notes by text, in order of first appearance.
type countNotes []tallied

// tallied is a note, its first row and the number of rows.
type tallied struct {
	first *table.RowError
	why   string
	count int
}

func (t *countNotes) add(row *table.RowError, why string) {
	i := slices.IndexFunc(*t, func(o tallied) bool { return o.why == why })
	if i < 0 {
		*t = append(*t, tallied{first: row, why: why})
		i = len(*t) - 1
	}
	(*t)[i].count++
}

func (t countNotes) errors() []error {
	var out []error
	for _, o := range t {
		var err error = o.first
		if o.count > 1 {
			err = fmt.Errorf("%w (so do %d further rows)", o.first, o.count-1)
		}
		out = append(out, err)
	}
	return out
}

// readJobs yields the jobs of a table with one per row. columns are required, optional ones are
// read too, others are noted. job converts a row; column id has the job's ID.
func (in *input) readJobs(id string, columns, optional []string, job func(*record) spec.Job) iter.Seq2[spec.Job, error] {
	return func(yield func(spec.Job, error) bool) {
		ids := jobIDs{column: id}
		first := true
		for row, err := range table.Read(in.reader, in.name, columns...) {
			if err == nil && first {
				first = false
				for _, note := range noteUnread(row, columns, optional) {
					if !yield(spec.Job{}, note) {
						return
					}
				}
			}
			rec := &record{Record: row}
			if err != nil && !yield(spec.Job{}, err) || err == nil && !ids.yield(rec, job(rec), yield) {
				return
			}
			if in.ctx.Err() != nil {
				yield(spec.Job{}, in.ctx.Err())
				return
			}
		}
	}
}

// jobIDs holds the ids of the jobs read so far.
type jobIDs struct {
	column string // that holds them
	line   map[spec.JobID]int
	names  map[string]string
}

// yield passes on a job and the notes of its row, or the error of the row.
func (ids *jobIDs) yield(rec *record, j spec.Job, yield func(spec.Job, error) bool) bool {
	if err := ids.check(rec, j); err != nil {
		return yield(spec.Job{}, err)
	}
	for _, why := range rec.notes {
		if !yield(spec.Job{}, &table.RowError{File: rec.File, Line: rec.Line, Err: rowNote{ErrNote, why}}) {
			return false
		}
	}
	j = ids.detach(j)
	if ids.line == nil {
		ids.line = map[spec.JobID]int{}
	}
	ids.line[j.ID] = rec.Line
	return yield(j, nil)
}

// detach returns j with strings of its own, so that it does not keep the row in memory.
func (ids *jobIDs) detach(j spec.Job) spec.Job {
	j.ID = spec.JobID(strings.Clone(string(j.ID)))
	j.Tenant, j.Model.Name, j.Accelerator = ids.name(j.Tenant), ids.name(j.Model.Name), ids.name(j.Accelerator)
	return j
}

// name returns one shared copy of a name.
func (ids *jobIDs) name(s string) string {
	shared, ok := ids.names[s]
	if !ok {
		if ids.names == nil {
			ids.names = map[string]string{}
		}
		shared = strings.Clone(s)
		ids.names[shared] = shared
	}
	return shared
}

// check returns the error of a row, including a repeated id or an invalid job.
func (ids *jobIDs) check(rec *record, j spec.Job) error {
	if line, twice := ids.line[j.ID]; twice && rec.Err() == nil {
		rec.Fail(ids.column, fmt.Errorf("is also the id of line %d", line))
	}
	if err := j.Validate(); err != nil && rec.Err() == nil {
		rec.FailRow(err)
	}
	return rec.Err()
}

// noteUnread notes the columns of a table that are not read.
func noteUnread(rec *table.Record, columns, optional []string) []error {
	var extra []string
	for c := range rec.Cols {
		if !slices.Contains(columns, c) && !slices.Contains(optional, c) {
			extra = append(extra, c)
		}
	}
	slices.Sort(extra)
	var out []error
	for _, c := range extra {
		out = append(out, &table.RowError{File: rec.File, Err: rowNote{ErrNote, fmt.Sprintf("column %q is not read", c)}})
	}
	return out
}

// jobModel returns the model that a trace names: from the catalog, else from the data sets, else
// with only its name.
func jobModel(name string) spec.Model {
	if m, err := catalog.Model(name); err == nil {
		return m
	}
	if m, _, ok := datasets.RubickModel(name); ok {
		return m
	}
	return spec.Model{Name: name, Kind: spec.Opaque}
}

// jobAccelerator returns the catalog's name of an accelerator, or the given name if the catalog
// lacks it.
func jobAccelerator(name string) string {
	if name == "" {
		return ""
	}
	if a, err := catalog.Accelerator(strings.ReplaceAll(name, "_", "-")); err == nil {
		return a.Name
	}
	return name
}
