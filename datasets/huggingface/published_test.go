package huggingface

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// The parameters of the published shapes are right within 0.1 %, those per token within the rounding of the model card.
func TestPublishedCounts(t *testing.T) {
	dir := filepath.Join(spectest.Shared(t), "data", "configs")
	f, err := os.Open(filepath.Join(dir, "counts.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, row := range rows[1:] {
		shape, err := os.Open(filepath.Join(dir, row[0]))
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := Read(shape)
		shape.Close()
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		if off := m.Params()/number(row[1]) - 1; math.Abs(off) > max(0.001, number(row[4])) {
			t.Errorf("%s: %.0f parameters, published %s: off by %+.4f %%", row[0], m.Params(), row[1], 100*off)
		}
		if off := m.ActiveParams()/number(row[2]) - 1; math.Abs(off) > max(0.001, number(row[5])) {
			t.Errorf("%s: %.0f parameters per token, published %s: off by %+.4f %%", row[0], m.ActiveParams(), row[2], 100*off)
		}
	}
}
