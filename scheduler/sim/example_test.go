package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Two jobs of a minute that ask for all devices run one after the other under fifo.
func ExampleRun() {
	fifo, err := builtin.Policies.New(policy.Spec{Name: "fifo"}, policy.Deps{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := sim.Run(context.Background(), sim.Config{
		Cluster: spec.Cluster{Groups: []spec.NodeGroup{{Count: 1, Devices: 4}}},
		Jobs: []spec.Job{
			{ID: "first", Devices: 4, Duration: time.Minute},
			{ID: "second", Devices: 4, Duration: time.Minute, Submit: 10 * time.Second},
		},
		Policy: fifo, PolicyName: "fifo", Truth: sim.Durations{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, j := range r.Jobs {
		fmt.Println(j.Job.ID, j.Start, j.End, j.JCT())
	}
	// Output:
	// first 0s 1m0s 1m0s
	// second 1m0s 2m0s 1m50s
}
