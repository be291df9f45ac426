package trace_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/datasets/trace"
)

// The format of a workload is detected from its header.
func ExampleRead() {
	text := "job_id,submit_s,gpus,duration_s\na,0,2,600\nb,30,x,60\nc,10,8,3600\n"
	w, err := trace.Read([]byte(text), "trace.csv", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("format", w.Format)
	for _, j := range w.Jobs {
		fmt.Println(j.ID, j.Submit, j.Devices, j.Duration)
	}
	fmt.Println("skipped:", w.Bad[0])
	// Output:
	// format csv
	// a 0s 2 10m0s
	// c 10s 8 1h0m0s
	// skipped: datasets: trace.csv:3: gpus "x": is not a whole number
}

// The busiest part of a trace, at twice its load.
func ExampleScaleLoad() {
	text := "job_id,submit_s,gpus,duration_s\na,0,1,60\nb,100,1,60\nc,160,1,60\n"
	w, err := trace.Read([]byte(text), "trace.csv", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	window, err := trace.ParseWindow("1-2")
	if err != nil {
		fmt.Println(err)
		return
	}
	jobs, err := trace.ScaleLoad(window.Cut(w.Jobs), 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, j := range jobs {
		fmt.Println(j.ID, j.Submit)
	}
	// Output:
	// b 0s
	// c 30s
}
