package report_test

import (
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Two jobs that complete 100 s and 300 s after their submission.
func ExampleSummarize() {
	s := report.Summarize(&sim.Result{Policy: "fifo", Devices: 8, Jobs: []sim.JobRecord{
		{Job: spec.Job{ID: "a"}, End: 100 * time.Second, Finished: true, Scored: true},
		{Job: spec.Job{ID: "b", Submit: 50 * time.Second}, Start: 100 * time.Second, End: 350 * time.Second, Finished: true, Scored: true},
	}}, report.Score{})
	fmt.Println(s.Finished, s.AvgJCT, s.MaxJCT, s.Makespan)
	// Output: 2 200 300 350
}
