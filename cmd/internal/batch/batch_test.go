package batch

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestOtherStacks: a training stack is another one if its name is, whatever its release.
func TestOtherStacks(t *testing.T) {
	for _, c := range []struct {
		rows, calibration string
		other             bool
	}{
		{"DeepSpeed@..2024-07", "DeepSpeed@..2024-08", false}, {"DeepSpeed@0.16 launch=eager", "DeepSpeed", false}, {"@..2023", "", false},
		{"Megatron-LM@2025", "Megatron Core", false}, {"FSDP", "DeepSpeed", true}, {"", "FSDP", true}, {"ours", "ours@..2024", false}, {"ours", "theirs", true},
	} {
		k := calibratedTo([]spec.Measurement{{Config: spec.Config{Framework: c.calibration}}})
		if note := k.otherStacks(map[string]bool{stackOf(&spec.Config{Framework: c.rows}): true}); (note != "") != c.other {
			t.Errorf("rows of %q, calibrated on %q: note %q", c.rows, c.calibration, note)
		}
	}
}

// BenchmarkPredictRows is the path from rows that are read to predictions, on
// one core.
func BenchmarkPredictRows(b *testing.B) {
	const n = 1 << 16
	var rows []answer
	for row, err := range datasets.PublishedRows(b.Context(), "rows.csv", strings.NewReader(spectest.DistinctRows(n)), nil, false) {
		if err != nil {
			b.Fatal(err)
		}
		rows = append(rows, answer{row: row})
	}
	fam, err := family.Lookup("hybrid")
	if err != nil {
		b.Fatal(err)
	}
	run := &Run{ctx: b.Context(), p: fam.Unfitted, memory: memory.Shipped()}
	b.ReportAllocs()
	for b.Loop() {
		run.answerPart(rows)
	}
	for i := range rows {
		if rows[i].err != nil {
			b.Fatal(rows[i].err)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "predictions/s")
}
