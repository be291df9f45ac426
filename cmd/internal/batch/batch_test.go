package batch

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

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
