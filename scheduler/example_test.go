package scheduler_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// The free devices of a cluster of two nodes with 8 devices each.
func ExampleInventory() {
	free := scheduler.NewInventory(spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 8}}})
	fmt.Println(free.Take([]scheduler.Slot{{Node: 0, Devices: 6}}), free.FreeIn(0))
	fmt.Println(free.Take([]scheduler.Slot{{Node: 0, Devices: 4}}), free.FreeIn(0))
	fmt.Println("least node with 4 free:", free.Next(0, free.Least(0, 4), 0))
	// Output:
	// true 10
	// false 10
	// least node with 4 free: 1
}
