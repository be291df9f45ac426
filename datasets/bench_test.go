package datasets

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func BenchmarkImport(b *testing.B) {
	shared := spectest.Shared(b)
	for _, imp := range Importers() {
		b.Run("dataset="+imp.Name, func(b *testing.B) {
			root := os.DirFS(filepath.Join(shared, "data", imp.Name))
			rows := 0
			for b.Loop() {
				rows = 0
				for _, err := range imp.Import(context.Background(), root) {
					var row *RowError
					if err != nil && !errors.As(err, &row) {
						b.Fatal(err)
					}
					rows++
				}
			}
			b.ReportMetric(float64(rows), "rows")
		})
	}
}
