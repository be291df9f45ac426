package spectest

import (
	"os"
	"testing"
)

// Shared returns the directory of the shared data sets, from PACER_SHARED.
// Without it the test is skipped, but where CI=true it fails: there the data
// must be present.
func Shared(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("PACER_SHARED")
	if dir != "" {
		return dir
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("PACER_SHARED is not set")
	}
	t.Skip("PACER_SHARED is not set: needs the shared data sets")
	return ""
}
