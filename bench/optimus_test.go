package bench

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestOptimusServers fits Optimus's synchronous form to DL2's measured speeds, by model: to all
// points, which is in sample, and to 10 random points, scored on the others, mean of 20 draws.
func TestOptimusServers(t *testing.T) {
	const (
		mostInSample, mostFromTen = 0.12, 0.15
		points, draws             = 10, 20
	)
	f := mustFamily(t, "optimus")
	groups := perfmodel.GroupByKey(importAll(t, "dl2"))
	var table strings.Builder
	fmt.Fprintf(&table, "%-24s %6s %9s %8s\n", "model", "points", "in-sample", "from ten")
	var inSample, fromTen []float64
	for _, key := range slices.SortedFunc(maps.Keys(groups), perfmodel.CompareKeys) {
		rows := slices.DeleteFunc(groups[key], func(m spec.Measurement) bool { return !perfmodel.Usable(m) })
		all := speedError(t, f, rows, rows)
		var left []float64
		for draw := range draws {
			order := rand.New(rand.NewPCG(1, uint64(draw))).Perm(len(rows))
			var fit, ask []spec.Measurement
			for i, at := range order {
				if i < points {
					fit = append(fit, rows[at])
				} else {
					ask = append(ask, rows[at])
				}
			}
			left = append(left, speedError(t, f, fit, ask))
		}
		ten := stat.Mean(left, nil)
		inSample, fromTen = append(inSample, all), append(fromTen, ten)
		fmt.Fprintf(&table, "%-24s %6d %9.3f %8.3f\n", key.Model, len(rows), all, ten)
		if !(all <= mostInSample) || !(ten <= mostFromTen) {
			t.Errorf("%s: error %.3f in-sample, %.3f from ten points, want at most %.2f and %.2f", key.Model, all, ten, mostInSample, mostFromTen)
		}
	}
	fmt.Fprintf(&table, "%-24s %6s %9.3f %8.3f\n", "mean", "", stat.Mean(inSample, nil), stat.Mean(fromTen, nil))
	t.Logf("mean absolute relative error of the speed:\n%s", &table)
}

// speedError returns the mean absolute relative error of the speed of ask as
// predicted by f fitted to fit.
func speedError(t *testing.T, f perfmodel.Family, fit, ask []spec.Measurement) float64 {
	t.Helper()
	fitted, _, err := f.Fit(t.Context(), perfmodel.Rows(fit))
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, m := range ask {
		got, err := fitted.Predict(t.Context(), m.Config)
		if err != nil {
			t.Fatal(err)
		}
		sum += math.Abs(got.Throughput/m.Throughput() - 1)
	}
	return sum / float64(len(ask))
}
