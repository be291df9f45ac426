package datasets

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Workload is a job trace that was read.
type Workload struct {
	Format string     // the format it was in
	Jobs   []spec.Job // by submission, then in the order of the file
	Bad    []error    // a *RowError for each row that is no job
	// Warnings is what stops nothing: columns that are not read.
	Warnings []error
}

// workloadFormat reads one format.
type workloadFormat struct {
	name string
	doc  string
	// header are the columns that tell the format; nil for tables without one.
	header []string
	read   func(w *Workload, r io.Reader, name string) error
	later  bool // a name the command line knows, without a reader yet
}

// workloadFormats, most particular header first.
var workloadFormats = []workloadFormat{
	{name: "csv", doc: "job_id,submit_s,gpus,duration_s[,model,plan,tenant,steps,weight,deadline_s,guaranteed]",
		header: []string{"job_id", "submit_s", "gpus"}, read: readJobCSV},
	{name: "rubick", doc: "traces of AlibabaPAI/reconfigurable-dl-scheduler, simulator/workloads",
		header: []string{"name", "submission_time", "application", "num_gpus", "exec_plan"}, read: readRubickWorkload},
	{name: "gavel", doc: "job_id,arrival_s,job_type,scale_factor,total_steps,duration_on_v100_s,priority_weight",
		header: []string{"job_id", "arrival_s", "job_type", "scale_factor", "total_steps"}, read: readGavelWorkload},
	{name: "gavel-trace", doc: "traces of stanford-futuredata/gavel, ten tab-separated columns or the older seven", read: readGavelTrace},
	{name: "blox", later: true},
	{name: "pollux", later: true, header: []string{"name", "time", "application", "num_replicas", "batch_size"}},
	{name: "sia", later: true},
	{name: "dl2", later: true, header: []string{"config", "trace", "job", "arrival_slot"}},
}

// WorkloadFormats lists the formats that ReadWorkload reads.
func WorkloadFormats() []string {
	var out []string
	for _, f := range workloadFormats {
		if !f.later {
			out = append(out, f.name)
		}
	}
	return out
}

// GuessFormat returns the format of a job trace by its first line, "" when
// none fits. It may name a format that ReadWorkload does not read yet.
func GuessFormat(data []byte) string {
	for _, first := range lines(bytes.NewReader(data)) {
		if n := strings.Count(first.s, "\t") + 1; n == gavelColumns || n == gavelOldColumns {
			return "gavel-trace"
		}
		cells, err := splitCSV(first.s)
		if err != nil {
			return ""
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		for _, f := range workloadFormats {
			if f.header != nil && containsAll(cells, f.header) {
				return f.name
			}
		}
		return ""
	}
	return ""
}

func containsAll(have, want []string) bool {
	for _, s := range want {
		if !slices.Contains(have, s) {
			return false
		}
	}
	return true
}

// ReadWorkload reads a job trace; name is what errors call the file, and format
// one of WorkloadFormats, or "" to tell it by the first line. Rows that are no
// job are in Workload.Bad, each with line, column and value. It fails when the
// format is unknown or the file as a whole cannot be read.
func ReadWorkload(data []byte, name, format string) (Workload, error) {
	guessed := format == ""
	if guessed {
		if len(bytes.TrimSpace(data)) == 0 {
			return Workload{}, fmt.Errorf("datasets: %s: the file is empty", name)
		}
		if format = GuessFormat(data); format == "" {
			return Workload{}, fmt.Errorf("datasets: %s: its first line is of no known workload format; name one of: %s",
				name, strings.Join(WorkloadFormats(), ", "))
		}
	}
	f, err := lookupFormat(format)
	if err != nil {
		return Workload{}, err
	}
	w := Workload{Format: format}
	if err := f.read(&w, bytes.NewReader(data), name); err != nil {
		return Workload{}, err
	}
	slices.SortStableFunc(w.Jobs, func(a, b spec.Job) int { return cmp.Compare(a.Submit, b.Submit) })
	return w, nil
}

func lookupFormat(name string) (workloadFormat, error) {
	var names []string
	for _, f := range workloadFormats {
		if f.name == name && f.later {
			return f, fmt.Errorf("datasets: workload format %s is not built yet; built are %s", name, strings.Join(WorkloadFormats(), ", "))
		}
		if f.name == name {
			return f, nil
		}
		names = append(names, f.name)
	}
	return workloadFormat{}, fmt.Errorf("datasets: unknown workload format %q, want one of: %s",
		name, strings.Join(named.Nearest(name, names, len(names)), ", "))
}

// readJobs reads a table with one job per row. columns must be there, optional
// ones are read too, others are warned of. job turns a row into a job whose ID
// is in column id.
func (w *Workload) readJobs(r io.Reader, name, id string, columns, optional []string, job func(*record) spec.Job) error {
	seen := map[spec.JobID]int{}
	for rec, err := range readCSV(r, name, columns...) {
		var row *RowError
		switch {
		case errors.As(err, &row):
			w.Bad = append(w.Bad, err)
			continue
		case err != nil:
			return err
		}
		if len(seen) == 0 && len(w.Bad) == 0 {
			w.Warnings = unread(rec, columns, optional)
		}
		w.add(rec, id, job(rec), seen)
	}
	return nil
}

// add keeps a job unless its row has a fault.
func (w *Workload) add(rec *record, id string, j spec.Job, seen map[spec.JobID]int) {
	if line, twice := seen[j.ID]; twice && rec.err() == nil {
		rec.fail(id, fmt.Errorf("is also the id of line %d", line))
	}
	if err := j.Validate(); err != nil && rec.err() == nil {
		rec.fault = &RowError{File: rec.file, Line: rec.line, Err: err}
	}
	if err := rec.err(); err != nil {
		w.Bad = append(w.Bad, err)
		return
	}
	seen[j.ID] = rec.line
	w.Jobs = append(w.Jobs, j)
}

// unread names the columns of a table that mean nothing here.
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
		out = append(out, fmt.Errorf("datasets: %s: column %q is not read", rec.file, c))
	}
	return out
}

// maxSeconds bounds times of traces: a hundred years, well inside a
// time.Duration.
const maxSeconds = 100 * maxStepSec

// seconds returns the time >= 0 in a column, 0 for an empty cell.
func (r *record) seconds(col string) time.Duration {
	v := r.atLeast0(col)
	if v > maxSeconds {
		r.fail(col, errors.New("is more than a hundred years"))
		return 0
	}
	return time.Duration(math.Round(v * float64(time.Second)))
}

// devices returns the number of devices in a column, at least 1.
func (r *record) devices(col string) int {
	r.need(col)
	n := r.count(col)
	if n < 1 || n > maxDevices {
		r.fail(col, fmt.Errorf("is not a number of devices in 1..%d", maxDevices))
		return 0
	}
	return n
}

// flag returns the truth value in a column, false for an empty cell.
func (r *record) flag(col string) bool {
	switch strings.ToLower(r.str(col)) {
	case "", "0", "false", "no":
		return false
	case "1", "true", "yes":
		return true
	}
	r.fail(col, errors.New("is not 0 or 1"))
	return false
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
