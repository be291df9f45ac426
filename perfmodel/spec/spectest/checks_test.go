package spectest

import (
	"flag"
	"testing"

	"pgregory.net/rapid"
)

// drawn counts the samples of a property.
func drawn(t *testing.T) (n int) {
	t.Helper()
	rapid.Check(t, func(*rapid.T) { n++ })
	return n
}

// Checks changes the number of samples of its test alone, a second time too, and not a number that is given.
func TestChecks(t *testing.T) {
	if given := flag.Lookup(checksFlag); given.Value.String() != given.DefValue || testing.Short() {
		t.Skipf("-%s is %s, and -short draws fewer", checksFlag, given.Value)
	}
	usual := drawn(t)
	for _, n := range []int{usual + 7, usual + 3} {
		t.Run("", func(t *testing.T) {
			Checks(t, n)
			if got := drawn(t); got != n {
				t.Errorf("%d samples, want %d", got, n)
			}
		})
		if got := drawn(t); got != usual {
			t.Errorf("%d samples after a test with %d, want %d", got, n, usual)
		}
	}
	t.Setenv(checksVariable, "5")
	Checks(t, usual+1)
	if got := drawn(t); got != usual {
		t.Errorf("%d samples, want the given %d", got, usual)
	}
}
