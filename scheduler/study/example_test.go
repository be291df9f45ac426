package study_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/scheduler/study"
)

// Three jobs of 100 device-seconds on 2 devices: no schedule has a lower mean JCT or a
// shorter makespan.
func ExampleLowerBounds() {
	b := study.LowerBounds([]study.Need{
		{AloneSec: 50, AreaSec: 100}, {AloneSec: 50, AreaSec: 100}, {AloneSec: 50, AreaSec: 100},
	}, 2, 0)
	fmt.Println(b.JCT(), b.Makespan())
	// Output: 100 150
}
