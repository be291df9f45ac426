package datasets

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Workload is a job trace that was read.
type Workload struct {
	Format string     // the format it was in
	Jobs   []spec.Job // by submission, then in the order of the file
	Bad    []error    // a *RowError for each row that is no job
	// Warnings is what stops nothing: columns that are not read, kinds of rows
	// that hold no job to schedule, jobs that were not in order.
	Warnings []error
	// Began is when the first job was submitted, zero where the trace has no
	// dates. A trace that gives no time zone is taken to be in UTC.
	Began time.Time
}

// ErrNoJob marks rows that are sound but ask for nothing to be scheduled: no
// devices, or no time on them. They come wrapped in a *RowError.
var ErrNoJob = errors.New("no job to schedule")

// ErrNote marks what should be seen of a trace whose rows are read all the
// same: columns that are not read, shares of devices that are rounded up. It
// comes wrapped in a *RowError.
var ErrNote = errors.New("note")

// rowNote is an error of one of these kinds; equal ones are counted together.
type rowNote struct {
	kind error
	why  string
}

func (n rowNote) Error() string { return n.why }
func (n rowNote) Unwrap() error { return n.kind }

// ReadJobs yields the jobs of the trace at file, a path in root, as they come;
// format is one of WorkloadFormats, or "" to tell it by the beginning. Memory
// holds the ids of the jobs, whatever the size of the file; gzip and tar
// archives are unpacked on the way.
//
// A row that is no job yields a *RowError and reading goes on; see also
// ErrNoJob and ErrNote. Any other error ends it. Times of submission are since
// the trace began or, where it has dates, since 1970: see Workload.Began.
func ReadJobs(ctx context.Context, root fs.FS, file, format string) iter.Seq2[spec.Job, error] {
	return func(yield func(spec.Job, error) bool) {
		in := &input{ctx: ctx, root: root, path: file, name: file}
		if err := in.open(format); err != nil {
			yield(spec.Job{}, err)
			return
		}
		defer in.close()
		in.jobs()(yield)
	}
}

// ReadWorkload reads a job trace; name is what errors call the file, and format
// one of WorkloadFormats, or "" to tell it by the beginning. Rows that are no
// job are in Workload.Bad, each with line, column and value. It fails when the
// format is unknown or the file as a whole cannot be read.
func ReadWorkload(data []byte, name, format string) (Workload, error) {
	return readWorkload(&input{ctx: context.Background(), name: name, content: bytes.NewReader(data)}, format)
}

// OpenWorkload is ReadWorkload on the file, or the directory of tables, at path.
func OpenWorkload(ctx context.Context, path, format string) (Workload, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return Workload{}, fmt.Errorf("datasets: %w", err)
	}
	return readWorkload(&input{ctx: ctx, root: os.DirFS(filepath.Dir(full)), path: filepath.Base(full), name: path}, format)
}

func readWorkload(in *input, format string) (Workload, error) {
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

// bySubmission returns jobs in order of submission, else as they come. It sorts
// where they are, not the jobs, which are large.
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
	var notes tally
	early, example := 0, ""
	for j, err := range in.jobs() {
		var row *RowError
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
		w.Warnings = append(w.Warnings, fmt.Errorf("datasets: %s: submitted before the job ahead of them: %d jobs, first %s; all are taken in order of submission", in.name, early, example))
	}
	return nil
}

// tally counts notes by what they say, in the order they came.
type tally []tallied

type tallied struct {
	first *RowError
	why   string
	count int
}

func (t *tally) add(row *RowError, why string) {
	i := slices.IndexFunc(*t, func(o tallied) bool { return o.why == why })
	if i < 0 {
		*t = append(*t, tallied{first: row, why: why})
		i = len(*t) - 1
	}
	(*t)[i].count++
}

func (t tally) errors() []error {
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

// readJobs yields the jobs of a table with one per row. columns must be there,
// optional ones are read too, others are noted. job turns a row into a job
// whose ID is in column id.
func (in *input) readJobs(id string, columns, optional []string, job func(*record) spec.Job) iter.Seq2[spec.Job, error] {
	return func(yield func(spec.Job, error) bool) {
		ids := jobIDs{column: id}
		first := true
		for rec, err := range readCSV(in.reader, in.name, columns...) {
			if err == nil && first {
				first = false
				for _, note := range unread(rec, columns, optional) {
					if !yield(spec.Job{}, note) {
						return
					}
				}
			}
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

// jobIDs are the ids of the jobs read so far.
type jobIDs struct {
	column string // that holds them
	line   map[spec.JobID]int
	names  map[string]string
}

// yield passes a job on with what its row notes, or the row's fault.
func (ids *jobIDs) yield(rec *record, j spec.Job, yield func(spec.Job, error) bool) bool {
	if err := ids.check(rec, j); err != nil {
		return yield(spec.Job{}, err)
	}
	for _, why := range rec.notes {
		if !yield(spec.Job{}, &RowError{File: rec.file, Line: rec.line, Err: rowNote{ErrNote, why}}) {
			return false
		}
	}
	j = ids.own(j)
	if ids.line == nil {
		ids.line = map[spec.JobID]int{}
	}
	ids.line[j.ID] = rec.line
	return yield(j, nil)
}

// own returns j without strings that are parts of a row and would keep all of
// it in memory.
func (ids *jobIDs) own(j spec.Job) spec.Job {
	j.ID = spec.JobID(strings.Clone(string(j.ID)))
	j.Tenant, j.Model.Name, j.Accelerator = ids.name(j.Tenant), ids.name(j.Model.Name), ids.name(j.Accelerator)
	return j
}

// name returns the one copy of a name that many jobs share.
func (ids *jobIDs) name(s string) string {
	own, ok := ids.names[s]
	if !ok {
		if ids.names == nil {
			ids.names = map[string]string{}
		}
		own = strings.Clone(s)
		ids.names[own] = own
	}
	return own
}

// check returns the fault of a row, a repeated id and a job that cannot be
// among them.
func (ids *jobIDs) check(rec *record, j spec.Job) error {
	if line, twice := ids.line[j.ID]; twice && rec.err() == nil {
		rec.fail(ids.column, fmt.Errorf("is also the id of line %d", line))
	}
	if err := j.Validate(); err != nil && rec.err() == nil {
		rec.fault = &RowError{File: rec.file, Line: rec.line, Err: err}
	}
	return rec.err()
}

// unread notes the columns of a table that mean nothing here.
func unread(rec *record, columns, optional []string) []error {
	var extra []string
	for c := range rec.cols {
		if !slices.Contains(columns, c) && !slices.Contains(optional, c) {
			extra = append(extra, c)
		}
	}
	slices.Sort(extra)
	var out []error
	for _, c := range extra {
		out = append(out, &RowError{File: rec.file, Err: rowNote{ErrNote, fmt.Sprintf("column %q is not read", c)}})
	}
	return out
}

// jobModel returns the model a trace names: the catalog's, or one of the data
// sets', or one known only by that name.
func jobModel(name string) spec.Model {
	if m, err := catalog.Model(name); err == nil {
		return m
	}
	if m, _, ok := RubickModel(name); ok {
		return m
	}
	return spec.Model{Name: name, Kind: spec.Opaque}
}

// jobAccelerator returns the catalog's name of an accelerator a trace names,
// or that name where the catalog has none.
func jobAccelerator(name string) string {
	if name == "" {
		return ""
	}
	if a, err := catalog.Accelerator(strings.ReplaceAll(name, "_", "-")); err == nil {
		return a.Name
	}
	return name
}
