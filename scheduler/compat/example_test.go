package compat_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/scheduler/compat"
)

// A mode with one of its quirks turned off, and the part of the engine that another
// one installs.
func ExampleParse() {
	m, err := compat.Parse("gavel:throttle=false")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Round, len(m.Has()), m.Parts().Rules.Lockstep != nil)
	_, err = compat.Parse("gavel:throttel")
	fmt.Println(err)
	// Output:
	// 6m0s 8 true
	// compat: gavel has no quirk "throttel", nearest: throttle, barrier, ticks
}
