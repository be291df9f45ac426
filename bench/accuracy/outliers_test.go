package accuracy

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestOutliers: rows ten times too slow are doubted, rows that were not altered are not.
func TestOutliers(t *testing.T) {
	b := newBench(t.Context(), Options{Shared: spectest.Shared(t)})
	r, err := outliers(t.Context(), b, contenderNamed(t, "hybrid"), []alteration{{10, 10}, {10, 1}})
	if err != nil {
		t.Fatal(err)
	}
	slow, same, sound := r.Figures[0].Value, r.Figures[1].Value, r.Figures[2].Value
	if slow < 0.95 || same > 0.01 || sound > 0.01 || r.Rows < 500 {
		t.Errorf("doubted %.3f of the slow rows, %.3f of the same ones beside ten, %.3f of all %d", slow, same, sound, r.Rows)
	}
}
