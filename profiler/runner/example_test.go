package runner_test

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/runner"
)

// A Replay returns stored rows. A configuration without a row fails.
func ExampleReplay() {
	config := spec.Config{
		Model: spec.Model{Name: "tiny"}, SeqLen: 32, Accelerator: spec.Accelerator{Name: "H100"},
		Plan: spec.Plan{MicroBatch: 4}, Shape: spec.NewShape(1),
	}
	rows := []spec.Measurement{{Config: config, Outcome: spec.OK, StepSec: []float64{0.19, 0.2, 0.21}}}
	r := runner.NewReplay(rows, runner.SimulatedTiming{})

	m, err := r.Run(context.Background(), config)
	fmt.Println(m.Outcome, m.MedianStepSec(), err)

	config.Plan.MicroBatch = 8
	m, err = r.Run(context.Background(), config)
	fmt.Println(m.Outcome, m.Reason, err)
	// Output:
	// ok 0.2 <nil>
	// failed not measured: no row of tiny on H100, plan dp=1,tp=1,pp=1,mb=8,ga=1 on 1 <nil>
}
