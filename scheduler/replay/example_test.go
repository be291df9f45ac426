package replay_test

import (
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/scheduler/replay"
)

// The recorded decisions of a round: job a has 2 devices of type V100, job b none.
func ExampleRead() {
	const rows = "time,name,gpu,gpus,batch_size,accum_steps,epoch,progress\n" +
		"60,a,v100,2,128,0,0,0\n60,b,,0,0,0,0,0\n"
	rounds, err := replay.Read(strings.NewReader(rows), "rounds.csv", func(gpu string) (string, error) { return strings.ToUpper(gpu), nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	for at, round := range rounds {
		fmt.Println(at, round["a"].Accelerator, round["a"].Devices, round["b"].Devices)
	}
	// Output: 1m0s V100 2 0
}
