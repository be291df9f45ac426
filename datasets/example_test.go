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
	// row skipped: datasets: ps_speed.csv:3: num_workers "x": is not a whole number
}

// ReadAll reads a whole data set, with invalid rows apart.
func ExampleReadAll() {
	table := "model,batch_size,num_ps,num_workers,speed_sum_samples_s\nresnet-50,32,2,4,80\nresnet-50,32,2,x,80\n"
	rows, bad, err := datasets.ReadAll(context.Background(), "dl2", fstest.MapFS{"ps_speed.csv": {Data: []byte(table)}})
	fmt.Println(len(rows), "rows,", len(bad), "invalid, error", err)
	// Output: 1 rows, 1 invalid, error <nil>
}
