package spectest

import (
	"os"
	"testing"
)

// Shared returns the directory of the shared data sets, from PACER_SHARED. If it is not set, Shared skips the
// test, or fails it if CI=true, where the data must be present.
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
