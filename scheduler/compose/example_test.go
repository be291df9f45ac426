package compose_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/scheduler/compose"
)

// A scheduler file has the values of a simulation's flags.
func ExampleRead() {
	settings, err := compose.Read("las.yaml", []byte("policy: {name: las, quantum: 600}\nround: 300\n"))
	fmt.Println(settings["policy"], settings["round"], err)
	_, err = compose.Read("las.yaml", []byte("policy: lass\n"))
	fmt.Println(err != nil)
	// Output:
	// las:quantum=600 300 <nil>
	// true
}
