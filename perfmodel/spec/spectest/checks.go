package spectest

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// checksFlag is rapid's flag of the number of samples, and checksVariable its environment variable.
const checksFlag, checksVariable = "rapid.checks", "RAPID_CHECKS"

// Checks sets the number of samples that rapid draws until t ends, in place of rapid's 100. The command line and the
// environment go first. Tests that draw at the same time share the number, so t must not be parallel.
func Checks(t testing.TB, n int) {
	t.Helper()
	given := os.Getenv(checksVariable) != ""
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == checksFlag && !setByChecks })
	if given {
		return
	}
	before := flag.Lookup(checksFlag).Value.String()
	set := func(value string) {
		if err := flag.Set(checksFlag, value); err != nil {
			t.Fatal(err)
		}
	}
	setByChecks = true // from here on the flag counts as given
	set(strconv.Itoa(n))
	t.Cleanup(func() { set(before) })
}

// setByChecks is true once Checks has set the flag, which nothing can unset.
var setByChecks bool
