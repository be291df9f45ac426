package hybrid

import (
	"errors"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestLastFit: gains after a fit of the same rows, in any order, are those of a family that has fitted nothing, and so are
// gains after a row has changed in place.
func TestLastFit(t *testing.T) {
	rows := hybridRows(t, 30, 1.1, 0.03)
	have, space := rows[:8], configsOf(rows)
	f := Shipped().Family()
	gains := func(f perfmodel.Family) []perfmodel.Gain {
		t.Helper()
		out, err := f.Gain(t.Context(), have, space, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if _, _, err := f.Fit(t.Context(), perfmodel.Rows(have)); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(have)
	before := gains(f)
	if want := gains(Shipped().Family()); !slices.Equal(before, want) {
		t.Errorf("gains after a fit are %v, want %v", before, want)
	}
	have[2].StepSec[0] *= 3
	after := gains(f)
	if want := gains(Shipped().Family()); !slices.Equal(after, want) || slices.Equal(after, before) {
		t.Errorf("gains after a change are %v, want %v; before it they were %v", after, want, before)
	}
}

// TestLastFitKept: the same rows are fitted once, others and repeats again, and what is returned can be changed.
func TestLastFitKept(t *testing.T) {
	rows := hybridRows(t, 9, 1.1, 0.03)
	var l lastFit
	fits := 0
	get := func(of ...int) *Model {
		var some []spec.Measurement
		for _, i := range of {
			some = append(some, rows[i])
		}
		m, err := l.get(some, func() (*Model, error) { fits++; return Shipped().conditionAnew(t.Context(), some) })
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := get(0, 1, 2)
	first.setMemory(nil)
	if again := get(2, 0, 1); fits != 1 || again.base.physics.Memory == nil {
		t.Errorf("%d fits of the same rows, memory %v; want 1 and that of the prior", fits, again.base.physics.Memory)
	}
	for i, of := range [][]int{{0, 1}, {0, 1, 3}, {0, 1, 1}, {0, 1, 1}} {
		if get(of...); fits != i+2 {
			t.Errorf("%d fits after rows %v, want %d", fits, of, i+2)
		}
	}
	wrong := errors.New("wrong")
	if _, err := l.get(rows[:5], func() (*Model, error) { return nil, wrong }); !errors.Is(err, wrong) {
		t.Errorf("error %v, want %v", err, wrong)
	}
}
