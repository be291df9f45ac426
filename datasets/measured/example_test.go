package measured_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/datasets/measured"
)

func ExampleLookup() {
	set, err := measured.Lookup("cpu-small")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Rows, "rows:", set.Doc)
	// Output: 233 rows: four small models on two CPU cores: data, tensor and pipeline parallel, ZeRO-1, accumulation, recomputation
}
