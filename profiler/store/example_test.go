package store_test

import (
	"context"
	"fmt"
	"os"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// measurement returns one invented row.
func measurement(model string, microBatch int, sec float64) spec.Measurement {
	return spec.Measurement{
		Config: spec.Config{
			Model: spec.Model{Name: model}, SeqLen: 1024, Accelerator: spec.Accelerator{Name: "H100"},
			Plan: spec.Plan{MicroBatch: microBatch}, Shape: spec.NewShape(1),
		},
		Outcome: spec.OK, StepSec: []float64{sec}, Source: "example",
	}
}

// Each row is stored once, and queries return rows in the order of their keys.
func ExampleDB_PutAll() {
	dir, err := os.MkdirTemp("", "store-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	ctx := context.Background()
	rows := []spec.Measurement{measurement("small", 4, 0.2), measurement("large", 1, 0.5)}
	for range 2 {
		counts, err := db.PutAll(ctx, rows...)
		fmt.Println("added", counts.Added, "unchanged", counts.Unchanged, err)
	}
	for m, err := range db.Query(ctx, store.Filter{}) {
		fmt.Println(m.Config.Model.Name, m.Throughput(), err)
	}
	// Output:
	// added 2 unchanged 0 <nil>
	// added 0 unchanged 2 <nil>
	// large 2 <nil>
	// small 20 <nil>
}
