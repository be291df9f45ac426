package perfmodel_test

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// FitKey fits a family to the rows of one model on one accelerator, and scores it on rows it did not fit. The
// rows here follow the family's formula exactly, so the predictions have no error.
func ExampleFitKey() {
	f, err := family.Lookup("optimus")
	if err != nil {
		fmt.Println(err)
		return
	}
	var rows []spec.Measurement
	for _, nodes := range [][]int{{1}, {2}, {4}, {4, 4}, {4, 4, 4, 4}} {
		for _, batch := range []int{4, 16} {
			c := spec.Config{Model: spec.Model{Name: "cnn"}, Accelerator: spec.Accelerator{Name: "V100"}, Shape: spec.NewShape(nodes...)}
			c.Plan = spec.Plan{DP: c.Shape.Total(), MicroBatch: batch}.Normal()
			sec := 0.05 + 0.01*float64(batch) + 0.002*float64(c.Plan.DP)
			rows = append(rows, spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{sec}})
		}
	}
	fitted, card, err := perfmodel.FitKey(context.Background(), f, rows, perfmodel.FitOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := rows[0].Config
	c.Shape = spec.NewShape(4, 4)
	c.Plan = spec.Plan{DP: 8, MicroBatch: 8}.Normal()
	p, err := fitted.Predict(context.Background(), c)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %d rows fitted, batch %.3f s/sample\n", card.Key, card.NFit, card.Params["batch"].Value)
	fmt.Printf("%.0f samples/s on 8 devices\n", p.Throughput)
	// Output:
	// cnn on V100: 10 rows fitted, batch 0.010 s/sample
	// 438 samples/s on 8 devices
}
