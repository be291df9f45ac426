package spectest

import (
	"os"
	"testing"
)

// Lacks skips the test because the machine lacks what it needs, or fails it if CI=true, where everything must be
// present.
func Lacks(t testing.TB, what ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what...)
	}
	t.Skip(what...)
}

// Shared returns the directory of the shared data sets, from PACER_SHARED. If it is not set, the machine Lacks it.
func Shared(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("PACER_SHARED")
	if dir == "" {
		Lacks(t, "PACER_SHARED is not set: needs the shared data sets")
	}
	return dir
}
