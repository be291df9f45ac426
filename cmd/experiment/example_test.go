package experiment_test

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/cmd/experiment"
)

// Twenty synthetic jobs on two nodes of eight devices, under two policies.
func Example() {
	ctx := context.Background()
	s, err := experiment.New(ctx, experiment.Options{Workload: "synthetic:jobs=20", Cluster: "2x8xH100", Policy: "fifo,srtf", Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	results, err := s.Run(ctx, experiment.Hooks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		finished := 0
		for _, j := range r.Jobs {
			if j.Unfinished == "" && j.Rejected == "" {
				finished++
			}
		}
		fmt.Println(r.Policy, finished, "of", len(r.Jobs), "jobs finished")
	}
	// Output:
	// fifo 20 of 20 jobs finished
	// srtf 20 of 20 jobs finished
}
