package accuracy

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestTake: rows that differ only in the number of micro-batches stay together, and groups are taken until there are
// enough rows.
func TestTake(t *testing.T) {
	plan := func(dp, micro, accum int) spec.Measurement {
		return spec.Measurement{Config: spec.Config{Plan: spec.Plan{DP: dp, MicroBatch: micro, AccumSteps: accum}}}
	}
	groups := siblings([]spec.Measurement{plan(1, 1, 1), plan(2, 1, 1), plan(1, 1, 8), plan(1, 2, 8), plan(2, 1, 4)})
	if diff := cmp.Diff([][]int{{0, 2}, {1, 4}, {3}}, groups); diff != "" {
		t.Fatalf("siblings (-want +got):\n%s", diff)
	}
	for _, c := range []struct {
		k             int
		shown, hidden []int
	}{{0, nil, []int{0, 1, 2, 3, 4}}, {1, []int{3}, []int{0, 1, 2, 4}}, {2, []int{1, 3, 4}, []int{0, 2}}, {3, []int{1, 3, 4}, []int{0, 2}}} {
		shown, hidden := take(groups, []int{2, 1, 0}, c.k)
		if !slices.Equal(shown, c.shown) || !slices.Equal(hidden, c.hidden) {
			t.Errorf("%d rows: shown %v, hidden %v, want %v, %v", c.k, shown, hidden, c.shown, c.hidden)
		}
	}
}

func TestFarthest(t *testing.T) {
	if got := farthest([][]float64{{0}, {1}, {10}, {4}}, 1); !slices.Equal(got, []int{1, 2, 3, 0}) {
		t.Errorf("order %v, want 1, then 10, 4 and 0", got)
	}
}

// TestRivals: each finds what it can describe, and one row moves all predictions alike.
func TestRivals(t *testing.T) {
	var at [][]float64
	var linear, step []float64
	for i := range 40 {
		x := float64(i)/20 - 1
		at = append(at, []float64{x, math.Mod(3*x, 1)})
		linear = append(linear, 0.3+0.2*x)
		step = append(step, 0.2*math.Copysign(1, x))
	}
	of := [][]float64{{0.52, 0.1}, {-0.52, -0.1}}
	for _, r := range rivals {
		if one := r.predict(at[:1], linear[:1], of); math.Abs(one[0]-linear[0]) > 1e-4 || math.Abs(one[0]-one[1]) > 1e-9 {
			t.Errorf("%s: after one row %v, want %g", r.name, one, linear[0])
		}
		y, off := step, 0.02
		if r.name == "ridge" {
			y, off = linear, 0.01
		}
		want := []float64{0.2, -0.2}
		if r.name == "ridge" {
			want = []float64{0.404, 0.196}
		}
		for i, got := range r.predict(at, y, of) {
			if math.Abs(got-want[i]) > off {
				t.Errorf("%s: %.3f at %v, want %.3f", r.name, got, of[i], want[i])
			}
		}
	}
}

// TestCurvePoint: errors and their standard error over draws, worked out by hand.
func TestCurvePoint(t *testing.T) {
	one := func(off ...float64) (out []prediction) {
		for _, o := range off {
			out = append(out, prediction{target: target{want: 1}, got: 1 + o, lo: 0.9, hi: 1.2})
		}
		return out
	}
	draws := map[int]*drawn{0: {predictions: one(0.1, 0.3), heldBack: 3}, 1: {predictions: append(one(0.1, 0.1), prediction{err: unable("no"), target: target{want: 1}}), heldBack: 4}}
	p := curvePoint(draws)
	if math.Abs(p.Mean.Value-0.15) > 1e-12 || math.Abs(p.Mean.SE-0.05) > 1e-12 || p.Scored != 2 || p.Refused != 0.5 || p.HeldBack != 3.5 || p.Coverage != 1 {
		t.Errorf("%+v, want a mean of 0.15 +- 0.05 over 2 rows, and half a row refused", p)
	}
}

// TestLearningCurves: after 30 rows of a source errors are lower than before, and than those of every rival. Sources of
// data/published are of many networks and machines, so that 30 rows at random say little of the rest; those of data/field are not.
func TestLearningCurves(t *testing.T) {
	shared := spectest.Shared(t)
	points, err := LearningCurves(t.Context(), CurveOptions{Shared: shared, known: &trained})
	if err != nil {
		t.Fatal(err)
	}
	at, scored := map[curveLine]CurvePoint{}, map[[2]string]float64{} // after 5 rows, by directory and whether of all
	for _, p := range points {
		if p.Order == "random" && p.Model == "hybrid" && p.Rows == 5 && (p.Source == pooled || p.Scored+p.Refused >= pooledRows) {
			scored[[2]string{p.Data, map[bool]string{true: pooled}[p.Source == pooled]}] += p.Scored
		}
		at[curveLine{p.Data + "/" + p.Source, p.Order, p.Model, p.Rows}] = p
	}
	for dir, most := range map[string]float64{publishedDir: 0.115, fieldDir: 0.04} { // mean error after 30 rows
		all := dir + "/" + pooled
		ours, before := at[curveLine{all, "random", "hybrid", 30}], at[curveLine{all, "random", "hybrid", 0}]
		if !(ours.Mean.Value < min(most, before.Mean.Value)) || ours.Draws != randomDraws {
			t.Errorf("%s: 30 rows: %+v, without rows %+v", dir, ours, before)
		}
	}
	for _, dir := range []string{publishedDir, fieldDir} {
		if all, sum := scored[[2]string{dir, pooled}], scored[[2]string{dir, ""}]; math.Abs(all-sum) > 1 {
			t.Errorf("%s: %g rows scored of all sources, %g of those with 20 rows and more", dir, all, sum)
		}
	}
	for _, r := range rivals {
		for _, k := range CurveRows[1:] {
			all := publishedDir + "/" + pooled
			ours, other := at[curveLine{all, "random", "hybrid", k}], at[curveLine{all, "random", r.name, k}]
			if !(ours.Mean.Value < other.Mean.Value) || other.Draws == 0 {
				t.Errorf("%d rows: mean %.4f, of %s %.4f", k, ours.Mean.Value, r.name, other.Mean.Value)
			}
		}
	}
}

// TestCurveTable: a line per curve with its points in their columns, and a line per point as CSV.
func TestCurveTable(t *testing.T) {
	points := []CurvePoint{
		{Data: "field", Source: "own", Order: "random", Model: "hybrid", Rows: 3, Mean: Spread{Value: 0.2}, Median: Spread{Value: 0.1}, Coverage: 0.9},
		{Data: "field", Source: "own", Order: "random", Model: "ridge", Rows: 0, Mean: Spread{Value: 0.3}},
		{Data: "field", Source: "own", Order: "random", Model: "hybrid", Rows: 100, Mean: Spread{Value: 0.05}, Median: Spread{Value: 0.04, SE: 0.01}},
	}
	want := [][]string{
		{"source", "order", "model", "0 rows", "1 rows", "3 rows", "5 rows", "10 rows", "30 rows", "100 rows"},
		{"field/own", "random", "hybrid", "-", "-", "20.0 / 10.0 (90)", "-", "-", "-", "5.0 / 4.0"},
		{"field/own", "random", "ridge", "30.0 / 0.0", "-", "-", "-", "-", "-", "-"},
	}
	if diff := cmp.Diff(want, CurveTable(points)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	lines := CurveCSV(points)
	if last := lines[3]; len(lines) != 4 || len(last) != len(lines[0]) || last[4] != "100" || last[8] != "0.05" || last[11] != "0.01" {
		t.Errorf("csv %v", lines)
	}
}
