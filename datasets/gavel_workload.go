package datasets

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Gavel counts a job's work in steps summed over its devices, like its
// throughputs: n devices that make k synchronous steps have done n·k. A Job's
// Steps are the synchronous ones, total_steps / scale_factor.

// readGavelWorkload reads a trace written out as CSV with a header.
func readGavelWorkload(w *Workload, r io.Reader, name string) error {
	return w.readJobs(r, name, "job_id",
		[]string{"job_id", "arrival_s", "job_type", "scale_factor", "total_steps"},
		[]string{"duration_on_v100_s", "priority_weight"},
		func(r *record) spec.Job {
			j := gavelJob(r, r.need("job_id"), "arrival_s", "scale_factor", "total_steps")
			j.Duration = r.seconds("duration_on_v100_s")
			j.Weight = r.atLeast0("priority_weight")
			return j
		})
}

// gavelJob reads what all of Gavel's formats have.
func gavelJob(r *record, id, arrival, devices, steps string) spec.Job {
	r.need(arrival)
	r.need(steps)
	j := spec.Job{ID: spec.JobID(id), Submit: r.seconds(arrival), Devices: r.devices(devices)}
	if j.Devices == 0 {
		return j
	}
	c := gavelConfig(r.need("job_type"), j.Devices)
	j.Model, j.Plan = c.Model, c.Plan
	j.Steps = r.atLeast0(steps) / float64(j.Devices)
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
func readGavelTrace(w *Workload, r io.Reader, name string) error {
	seen, next := map[spec.JobID]int{}, 0
	for line, text := range lines(r) {
		if text.err != nil {
			return fmt.Errorf("datasets: %s: %w", name, text.err)
		}
		cells := strings.Split(text.s, "\t")
		id := strconv.Itoa(next)
		next++
		cols, ok := gavelTraceColumns[len(cells)]
		if !ok {
			w.Bad = append(w.Bad, &RowError{File: name, Line: line,
				Err: fmt.Errorf("has %d tab-separated columns, want %d or %d", len(cells), gavelColumns, gavelOldColumns)})
			continue
		}
		rec := &record{file: name, line: line, cols: cols, cells: cells}
		w.add(rec, "job_type", gavelTraceJob(rec, id), seen)
	}
	if next == 0 {
		return fmt.Errorf("datasets: %s: the file is empty", name)
	}
	return nil
}

func gavelTraceJob(r *record, id string) spec.Job {
	j := gavelJob(r, id, "arrival", "scale_factor", "total_steps")
	j.Weight = r.atLeast0("priority_weight")
	if r.float("SLO") > 0 {
		// a multiple of the duration on a V100, which the trace does not hold
		r.fail("SLO", errors.New("is set; deadlines of these traces are not read, want -1"))
	}
	return j
}
