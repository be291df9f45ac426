package bench

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// published yields the readable rows of data/published.
func published(t testing.TB) []spec.Measurement {
	t.Helper()
	out := importAll(t, "published")
	if len(out) == 0 {
		t.Fatal("data/published holds no readable row")
	}
	return out
}
