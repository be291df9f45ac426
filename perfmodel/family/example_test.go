package family_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/family"
)

func ExampleLookup() {
	fmt.Println(family.Names())
	f, err := family.Lookup("analytic")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Name, "needs measurements:", f.Unfitted == nil)
	// Output:
	// [analytic hybrid optimus pollux rubick sia]
	// analytic needs measurements: false
}
