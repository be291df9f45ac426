package measured_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// A table answers for measured configurations only.
func ExampleTable() {
	c := spec.Config{
		Model: spec.Model{Name: "bert", SeqLen: 512}, Accelerator: spec.Accelerator{Name: "V100"},
		Plan: spec.Plan{DP: 4, MicroBatch: 8}.Normal(), Shape: spec.NewShape(4),
	}
	t := measured.New([]spec.Measurement{{Config: c, Outcome: spec.OK, StepSec: []float64{0.5}}})
	p, err := t.Predict(context.Background(), c)
	fmt.Println(p.Throughput, "samples/s", err)
	c.Plan.MicroBatch = 16
	_, err = t.Predict(context.Background(), c)
	fmt.Println(errors.Is(err, measured.ErrNotMeasured))
	// Output:
	// 64 samples/s <nil>
	// true
}
