package place_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/place"
)

// Packed puts 3 devices on the node where they fit most tightly.
func ExampleLookup() {
	free := scheduler.NewInventory(spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 8}}})
	free.Take([]scheduler.Slot{{Node: 1, Devices: 5}})
	packed, err := place.Lookup("packed")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(packed.Place(free, 0, spec.NewShape(3)))
	// Output: [{1 3}] true
}
