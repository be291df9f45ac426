package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// pai2020Trace describes the published trace.
var pai2020Trace = Format{
	License: "CC-BY-4.0",
	URL:     "https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2020",
	Commit:  "7a6c496e4f4b6ce6150be8f881cb051bf2abff42",
}

// Columns of the tables, which have no header.
var (
	paiJobColumns  = []string{"job_name", "inst_id", "user", "status", "start_time", "end_time"}
	paiTaskColumns = []string{"job_name", "task_name", "inst_num", "status", "start_time", "end_time",
		"plan_cpu", "plan_mem", "plan_gpu", "gpu_type"}
)

// paiTasks sums up the tasks of a job.
type paiTasks struct {
	gpus        float64 // inst_num x plan_gpu / 100, summed
	start, end  float64 // seconds, of tasks with GPUs; 0 = unknown
	accelerator string
	mixed       bool // of several types
	line        int  // of the first
	bad         bool // one of them is invalid
}

// readPAI2020 joins pai_job_table and pai_task_table of a directory, as CSV, gzip or tar.gz. A job
// is submitted at its start_time, "timestamp of job submission time". It runs from the first start
// to the last end of its tasks with GPUs; if tasks have no times, from its own start to its own
// end, which includes the wait. It asks for the GPUs of all its instances, rounded up. Times have a
// constant subtracted that keeps hour of day and day of week in UTC+8. Memory holds an entry for
// each job of the task table.
func readPAI2020(in *input) iter.Seq2[spec.Job, error] {
	return func(yield func(spec.Job, error) bool) {
		tasks := map[string]*paiTasks{}
		for rec, err := range in.paiTable("pai_task_table", paiTaskColumns) {
			if err == nil {
				err = addTask(tasks, rec)
			}
			if err != nil && !yield(spec.Job{}, err) {
				return
			}
		}
		ids := jobIDs{column: "job_name"}
		for row, err := range in.paiTable("pai_job_table", paiJobColumns) {
			rec := &record{Record: row}
			if err != nil && !yield(spec.Job{}, err) || err == nil && !ids.yield(rec, paiJob(rec, tasks), yield) {
				return
			}
		}
	}
}

// paiTable yields the rows of a table.
func (in *input) paiTable(name string, columns []string) iter.Seq2[*table.Record, error] {
	return func(yield func(*table.Record, error) bool) {
		files := tableFiles(in.root, in.path, name)
		if len(files) == 0 {
			yield(nil, fmt.Errorf("datasets: %s: the directory holds no %s.csv, .csv.gz or .tar.gz", in.name, name))
			return
		}
		f, err := in.root.Open(files[0])
		if err != nil {
			yield(nil, fmt.Errorf("datasets: %w", err))
			return
		}
		defer f.Close()
		r, err := unpack(f, name)
		if err != nil {
			yield(nil, fmt.Errorf("datasets: %s: %w", files[0], err))
			return
		}
		bareRows(in.ctx, r, files[0], columns)(yield)
	}
}

// bareRows yields the rows of a table without a header line; it skips one that was added.
func bareRows(ctx context.Context, r io.Reader, file string, columns []string) iter.Seq2[*table.Record, error] {
	heading := strings.NewReader(strings.Join(columns, ",") + "\n")
	return func(yield func(*table.Record, error) bool) {
		for rec, err := range table.Read(io.MultiReader(heading, r), file, columns...) {
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			var row *table.RowError
			switch {
			case rec != nil && rec.Line == 2 && slices.Equal(rec.Cells, columns):
				continue
			case rec != nil:
				rec.Line-- // the header is not in the file
			case errors.As(err, &row):
				row.Line--
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// addTask adds a row of the task table to its job.
func addTask(tasks map[string]*paiTasks, r *table.Record) error {
	name := r.Need("job_name")
	t := tasks[name]
	if t == nil {
		t = &paiTasks{line: r.Line}
		// the cells of a row share its memory, which the map must not keep
		tasks[strings.Clone(name)] = t
	}
	gpus := r.AtLeast0("inst_num") * r.AtLeast0("plan_gpu") / 100
	start, end := r.AtLeast0("start_time"), r.AtLeast0("end_time")
	if end > 0 && end < start {
		r.Fail("end_time", fmt.Errorf("is before start_time %s", r.Str("start_time")))
	}
	if r.Err() != nil {
		t.bad = true
		return r.Err()
	}
	if gpus == 0 {
		return nil
	}
	accelerator := strings.Clone(paiAccelerator(r.Str("gpu_type")))
	t.mixed = t.mixed || t.gpus > 0 && accelerator != t.accelerator
	t.accelerator = accelerator
	t.gpus += gpus
	if start > 0 && (t.start == 0 || start < t.start) {
		t.start = start
	}
	t.end = max(t.end, end)
	return nil
}

// paiJob converts a row of the job table and its tasks.
func paiJob(r *record, tasks map[string]*paiTasks) spec.Job {
	j := spec.Job{
		ID:     spec.JobID(r.Need("job_name")),
		Submit: r.needSeconds("start_time"),
		Tenant: r.Str("user"),
	}
	t := tasks[string(j.ID)]
	switch {
	case t == nil:
		r.leaveOut("has no task")
		return j
	case t.bad:
		r.leaveOut("has a task that cannot be read")
		return j
	}
	j.Devices = r.whole("plan_gpu", roundShare(t.gpus))
	if !t.mixed {
		j.Accelerator = t.accelerator
	}
	start, end := t.start, t.end
	if start == 0 || end == 0 {
		start, end = r.Float("start_time"), r.Float("end_time")
	}
	switch {
	case end == 0:
		r.leaveOut(whyNoStart)
	case end < start:
		r.Fail("end_time", errors.New("is before the start of the job"))
	case end == start:
		r.leaveOut(whyNoTime)
	case end-start > maxSeconds:
		r.Fail("end_time", errors.New("is more than a hundred years after the start"))
	default:
		j.Duration = seconds(end - start)
	}
	return j
}

// roundShare rounds a sum of percents to a thousandth, so that ten tenths are exactly one.
func roundShare(gpus float64) float64 { return math.Round(gpus*1000) / 1000 }
