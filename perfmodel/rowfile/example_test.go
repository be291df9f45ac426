package rowfile_test

import (
	"bytes"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// A Parquet file is written and read again.
func ExampleWriteParquet() {
	row := spec.Measurement{
		Config:  spec.Config{Model: spec.Model{Name: "small"}, Accelerator: spec.Accelerator{Name: "H100"}, Plan: spec.Plan{MicroBatch: 4}, Shape: spec.NewShape(1)},
		Outcome: spec.OK, StepSec: []float64{0.2}, Source: "example",
	}
	var file bytes.Buffer
	n, err := rowfile.WriteParquet(&file, func(yield func(spec.Measurement, error) bool) {
		yield(row, nil)
	})
	fmt.Println(n, "row written", err)
	for m, err := range rowfile.ReadParquetFrom("rows.parquet", bytes.NewReader(file.Bytes()), int64(file.Len())) {
		fmt.Println(m.Config.Model.Name, m.Config.Plan, err)
	}
	// Output:
	// 1 row written <nil>
	// small dp=1,tp=1,pp=1,mb=4,ga=1 <nil>
}
