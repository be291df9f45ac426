package admission_test

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/admission"
)

// On four devices, the rule holds a job that would raise the requested devices above 1.5
// times those of the cluster.
func ExampleLookup() {
	rule, err := admission.Lookup("load:1.5")
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster := spec.Cluster{Groups: []spec.NodeGroup{{Count: 1, Devices: 4}}}
	s := scheduler.NewSnapshot(0, cluster, []*scheduler.JobState{{Job: &spec.Job{ID: "first", Devices: 4}}})
	for _, devices := range []int{2, 3} {
		fmt.Println(rule.Admit(context.Background(), s, spec.Job{ID: "next", Devices: devices}))
	}
	// Output:
	// true  <nil>
	// false jobs in the system request 4 devices, 3 more would exceed 6 <nil>
}
