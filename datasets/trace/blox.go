package trace

import (
	"errors"
	"fmt"
	"iter"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// bloxTrace describes the simulator. Its jobs come from a log of Philly and its own random numbers.
var bloxTrace = Format{
	License: "MIT",
	URL:     "https://github.com/msr-fiddle/blox",
	Commit:  "c8851b2b217e9203039ca354795f90c9f835e659",
}

// readBloxWorkload reads the jobs of a run: job_id, submit_s, gpus, duration_s. Blox numbers jobs
// by arrival and scores them by number. So ids are whole numbers, and no job is submitted before
// one with a lower number.
func readBloxWorkload(in *input) iter.Seq2[spec.Job, error] {
	last := spec.Job{}
	lastID := -1
	return in.readJobs("job_id", []string{"job_id", "submit_s", "gpus", "duration_s"}, nil,
		func(r *record) spec.Job {
			id := r.Need("job_id")
			n := r.Count("job_id")
			j := spec.Job{
				ID:       spec.JobID(id),
				Submit:   r.needSeconds("submit_s"),
				Devices:  r.devices("gpus"),
				Duration: r.seconds("duration_s"),
			}
			switch {
			case n == lastID: // reported as a duplicate
			case n < lastID:
				r.Fail("job_id", fmt.Errorf("follows job %d, want numbers in ascending order", lastID))
			case j.Submit < last.Submit:
				r.Fail("submit_s", fmt.Errorf("is before job %d, which has a lower number", lastID))
			}
			if j.Duration == 0 {
				r.Fail("duration_s", errors.New("is missing or 0"))
			}
			if r.Err() == nil {
				last, lastID = j, n
			}
			return j
		})
}
