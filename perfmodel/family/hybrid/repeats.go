package hybrid

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// repeatsOf returns the scatter of configurations that one source measured several times.
func repeatsOf(rows []spec.Measurement) (out []gp.Repeats) {
	type run struct {
		spec.Config
		source string
	}
	at := map[run]int{} // index in groups
	var groups [][]spec.Measurement
	for _, m := range rows {
		is := run{perfmodel.Canonical(m.Config), m.Source}
		i, ok := at[is]
		if !ok {
			i = len(groups)
			at[is], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	for _, of := range groups {
		if runs := runsOf(of); len(runs) > 1 {
			out = append(out, gp.NewRepeats(runs))
		}
	}
	slices.SortFunc(out, slices.Compare)
	return out
}

// runsOf returns the step times of rows of one configuration. Rows of the same time are one run, and so are rows
// without a time that have the same step time: they are copies.
func runsOf(rows []spec.Measurement) (seconds []float64) {
	slices.SortFunc(rows, func(a, b spec.Measurement) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.MedianStepSec(), b.MedianStepSec()))
	})
	for i, m := range rows {
		sec := m.MedianStepSec()
		if i == 0 || !m.At.Equal(rows[i-1].At) || m.At.IsZero() && sec != rows[i-1].MedianStepSec() {
			seconds = append(seconds, sec)
		}
	}
	return seconds
}
