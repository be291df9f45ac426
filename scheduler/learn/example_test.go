package learn_test

import (
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/learn"
)

// An episode has as many jobs as the workload, and the same gaps between submissions.
func ExampleResample() {
	jobs := []spec.Job{{ID: "a", Devices: 1}, {ID: "b", Devices: 2, Submit: time.Minute}, {ID: "c", Devices: 4, Submit: time.Hour}}
	out := learn.Resample(jobs, 1, 0)
	fmt.Println(len(out), out[0].ID, out[0].Submit, out[2].Submit)
	// Output: 3 a 0s 1h0m0s
}
