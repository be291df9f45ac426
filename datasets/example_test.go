package datasets_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/pacer-ml/pacer/datasets"
)

// An importer reads the files of a data set below any file system.
func ExampleImporter() {
	table := "model,batch_size,num_ps,num_workers,speed_sum_samples_s\nresnet-50,32,2,4,80\nresnet-50,32,2,x,80\n"
	root := fstest.MapFS{"ps_speed.csv": {Data: []byte(table)}}
	dl2, err := datasets.Lookup("dl2")
	if err != nil {
		fmt.Println(err)
		return
	}
	for m, err := range dl2.Import(context.Background(), root) {
		if err != nil {
			fmt.Println("row skipped:", err)
			continue
		}
		fmt.Println(m.Config.Model.Name, m.Config.Plan, m.StepSec)
	}
	// Output:
	// resnet-50 dp=4,tp=1,pp=1,ps=2,mb=8,ga=1 [0.4]
	// row skipped: datasets: ps_speed.csv:3: num_workers "x": is not a finite number
}

// The format of a workload is detected from its header.
func ExampleReadWorkload() {
	trace := "job_id,submit_s,gpus,duration_s\na,0,2,600\nb,30,x,60\nc,10,8,3600\n"
	w, err := datasets.ReadWorkload([]byte(trace), "trace.csv", "")
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
	// skipped: datasets: trace.csv:3: gpus "x": is not a finite number
}

// The busiest part of a trace, at twice its load.
func ExampleScaleLoad() {
	trace := "job_id,submit_s,gpus,duration_s\na,0,1,60\nb,100,1,60\nc,160,1,60\n"
	w, err := datasets.ReadWorkload([]byte(trace), "trace.csv", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	window, err := datasets.ParseWindow("1-2")
	if err != nil {
		fmt.Println(err)
		return
	}
	jobs, err := datasets.ScaleLoad(window.Cut(w.Jobs), 2)
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
