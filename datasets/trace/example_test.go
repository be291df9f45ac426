package trace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pacer-ml/pacer/datasets/trace"
)

// The format of a workload is detected from its header.
func ExampleOpen() {
	w, err := openText("job_id,submit_s,gpus,duration_s\na,0,2,600\nb,30,x,60\nc,10,8,3600\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("format", w.Format)
	for _, j := range w.Jobs {
		fmt.Println(j.ID, j.Submit, j.Devices, j.Duration)
	}
	_, fault, _ := strings.Cut(w.Bad[0].Error(), "trace.csv:")
	fmt.Println("skipped: line", fault)
	// Output:
	// format csv
	// a 0s 2 10m0s
	// c 10s 8 1h0m0s
	// skipped: line 3: gpus "x": is not a whole number
}

// The busiest part of a trace, at twice its load.
func ExampleScaleLoad() {
	w, err := openText("job_id,submit_s,gpus,duration_s\na,0,1,60\nb,100,1,60\nc,160,1,60\n")
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

// openText opens a trace of this text.
func openText(text string) (trace.Workload, error) {
	dir, err := os.MkdirTemp("", "trace")
	if err != nil {
		return trace.Workload{}, err
	}
	file := filepath.Join(dir, "trace.csv")
	err = os.WriteFile(file, []byte(text), 0o600)
	w, openErr := trace.Open(context.Background(), file, "")
	return w, errors.Join(err, openErr, os.RemoveAll(dir))
}
