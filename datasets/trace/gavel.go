package trace

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Gavel counts the work of a job in steps summed over its devices, like its throughputs: n devices
// after k synchronous steps count n·k. Job.Steps are the synchronous ones, total_steps /
// scale_factor.

// gavelTrace describes the published traces.
var gavelTrace = Format{
	License: "MIT",
	URL:     "https://github.com/stanford-futuredata/gavel",
	Commit:  "c4fa40097339e9608ab71fd64c8bdea96a5e4a4c",
}

// readGavelWorkload reads a trace as CSV with a header.
func readGavelWorkload(in *input) iter.Seq2[spec.Job, error] {
	return in.readJobs("job_id",
		[]string{"job_id", "arrival_s", "job_type", "scale_factor", "total_steps"},
		[]string{"duration_on_v100_s", "priority_weight"},
		func(r *record) spec.Job {
			j := gavelJob(r, r.Need("job_id"), "arrival_s")
			j.Duration = r.seconds("duration_on_v100_s")
			j.Weight = r.AtLeast0("priority_weight")
			return j
		})
}

// gavelJob reads the fields that all of Gavel's formats have.
func gavelJob(r *record, id, arrival string) spec.Job {
	r.Need(arrival)
	r.Need("total_steps")
	j := spec.Job{ID: spec.JobID(id), Submit: r.seconds(arrival), Devices: r.devices("scale_factor")}
	if j.Devices == 0 {
		return j
	}
	c := datasets.GavelConfig(r.Need("job_type"), j.Devices)
	j.Model, j.Plan = c.Model, c.Plan
	j.Steps = r.AtLeast0("total_steps") / float64(j.Devices)
	return j
}

// Columns of a trace file, which has no header.
const (
	gavelColumns    = 10
	gavelOldColumns = 7 // of the traces derived from Philly's; upstream's parser no longer reads them
)

var gavelTraceColumns = map[int]map[string]int{
	gavelColumns: {"job_type": 0, "command": 1, "working_directory": 2, "num_steps_arg": 3, "needs_data_dir": 4,
		"total_steps": 5, "scale_factor": 6, "priority_weight": 7, "SLO": 8, "arrival": 9},
	gavelOldColumns: {"job_type": 0, "command": 1, "num_steps_arg": 2, "needs_data_dir": 3,
		"total_steps": 4, "arrival": 5, "scale_factor": 6},
}

// readGavelTrace reads Gavel's own trace files: tab-separated, no header. Jobs
// are numbered from 0 in the order of the file, as its simulator does.
func readGavelTrace(in *input) iter.Seq2[spec.Job, error] {
	return func(yield func(spec.Job, error) bool) {
		ids, next := jobIDs{column: "job_type"}, 0
		for line, text := range table.Lines(in.reader) {
			if err := cmp.Or(text.Err, in.ctx.Err()); err != nil {
				yield(spec.Job{}, fmt.Errorf("datasets: %s: %w", in.name, err))
				return
			}
			cells := strings.Split(text.Text, "\t")
			rec := &record{Record: &table.Record{File: in.name, Line: line, Cols: gavelTraceColumns[len(cells)], Cells: cells}}
			id := strconv.Itoa(next)
			next++
			if rec.Cols == nil {
				rec.FailRow(fmt.Errorf("has %d tab-separated columns, want %d or %d", len(cells), gavelColumns, gavelOldColumns))
			}
			if !ids.yield(rec, gavelTraceJob(rec, id), yield) {
				return
			}
		}
		if next == 0 {
			yield(spec.Job{}, fmt.Errorf("datasets: %s: %w", in.name, table.ErrEmpty))
		}
	}
}

func gavelTraceJob(r *record, id string) spec.Job {
	j := gavelJob(r, id, "arrival")
	j.Weight = r.AtLeast0("priority_weight")
	if r.Float("SLO") > 0 {
		// a multiple of the duration on a V100, which the trace does not hold
		r.Fail("SLO", errors.New("is set; deadlines of these traces are not read, want -1"))
	}
	return j
}
