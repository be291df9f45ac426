package online_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/online"
)

// The profile has half of the true step times. Observed steps correct the model.
func ExampleOracle_Learn() {
	f, err := family.Lookup("optimus")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	oracle, err := online.New(ctx, online.Options{Family: f, Rows: profile("resnet", 1, 2, 4, 8, 16), Every: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	steps := func() {
		p, err := oracle.Predict(ctx, config("resnet", 4))
		fmt.Printf("%.2f steps/s %v\n", p.Throughput/64, err)
	}
	steps()
	for at := range 5 {
		var seen []spec.Measurement
		for _, n := range []int{1, 2, 4, 8, 16} {
			seen = append(seen, row("resnet", n, sec(n)))
		}
		if err := oracle.Learn(ctx, time.Duration(at)*time.Minute, seen); err != nil {
			fmt.Println(err)
			return
		}
	}
	steps()
	fmt.Println(oracle.Learned().Seen, "observations")
	// Output:
	// 8.33 steps/s <nil>
	// 4.17 steps/s <nil>
	// 25 observations
}
