package synthetic_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/datasets/synthetic"
)

// Bursty arrivals at nine tenths of the capacity of 64 devices.
func ExampleWorkload() {
	o := synthetic.Options{Seed: 1}
	if err := o.Set("jobs=1000,arrivals=bursty,sizes=1x0.7+8x0.3,load=0.9x64"); err != nil {
		fmt.Println(err)
		return
	}
	jobs, err := synthetic.Workload(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d jobs, %.1f per hour\n", len(jobs), o.PerHour)
	for _, j := range jobs[:2] {
		fmt.Println(j.ID, j.Submit.Round(1e9), j.Devices, j.Duration.Round(1e9))
	}
	// Output:
	// 1000 jobs, 18.2 per hour
	// job-0001 2m59s 1 2m39s
	// job-0002 8m52s 1 1h4m23s
}
