package bench

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// published yields the readable rows of data/published.
func published(t testing.TB) []spec.Measurement {
	t.Helper()
	imp, err := datasets.Lookup("published")
	if err != nil {
		t.Fatal(err)
	}
	var out []spec.Measurement
	for m, err := range imp.Import(context.Background(), os.DirFS(filepath.Join(spectest.Shared(t), "data", "published"))) {
		if err == nil {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		t.Fatal("data/published holds no readable row")
	}
	return out
}
