package goodput_test

import (
	"fmt"
	"testing/fstest"

	"github.com/pacer-ml/pacer/scheduler/goodput"
)

// A batch of 32 samples on two devices. Micro-batches of 8 samples are the largest that
// were measured, so each device accumulates two of them.
func ExampleTables_Plan() {
	tables, err := goodput.Read(fstest.MapFS{
		"traces/lm/validation-8.csv":  {Data: []byte("progress,iteration,grad_sqr,grad_var\n100,100,1,3\n")},
		"traces/lm/validation-64.csv": {Data: []byte("progress,iteration,grad_sqr,grad_var\n100,40,1,3\n")},
		"traces/lm/placements.csv":    {Data: []byte("placement,local_bsz,step_time,sync_time\n1,4,0.5,0\n1,8,0.9,0\n2,4,0.6,0.1\n2,8,1,0.1\n")},
	}, []goodput.Device{{Accelerator: "T4"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := tables.Plan("lm", "T4", 32, 2)
	fmt.Println(plan, err)
	_, err = tables.Plan("lm", "T4", 128, 2)
	fmt.Println(err)
	// Output:
	// dp=2,tp=1,pp=1,mb=8,ga=2 <nil>
	// goodput: lm was trained with 8 to 64 samples per step, not 128: not covered by this performance model
}
