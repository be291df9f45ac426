package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/planner"
)

func TestBarOfParts(t *testing.T) {
	parts := []Part{{"a", 3}, {"b", 1}, {"dust", 1e-6}, {"none", 0}}
	b, ok := newBar(parts, 10, 0)
	want := []barPart{{What: "a", Size: "30.0", Share: "75.0 %", Width: "75.000", Color: 1}, {What: "b", Size: "10.0", Share: "25.0 %", Width: "25.000", Color: 2}}
	if diff := cmp.Diff(want, b.Parts); !ok || diff != "" {
		t.Error(ok, diff)
	}
	// A whole larger than its parts leaves a blank end; a smaller one does not make
	// the bar longer.
	for whole, width := range map[float64]float64{8: 50, 4: 100, 1: 100} {
		b, _ := newBar(parts[:2], 1, whole)
		sum := 0.0
		for _, p := range b.Parts {
			w, err := strconv.ParseFloat(p.Width, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += w
		}
		if math.Abs(sum-width) > 0.01 {
			t.Errorf("of %g: parts are %g %% wide, want %g", whole, sum, width)
		}
	}
	for _, none := range [][]Part{nil, {{"a", 0}}, {{"a", math.NaN()}}, {{"a", math.Inf(1)}}} {
		if _, ok := newBar(none, 1, 1); ok {
			t.Errorf("a bar of %v", none)
		}
	}
	var many []Part
	for range 10 {
		many = append(many, Part{"p", 1})
	}
	b, _ = newBar(many, 1, 0)
	if b.Parts[7].Striped || !b.Parts[8].Striped || b.Parts[8].Color != 1 {
		t.Error("the ninth part is not told from the first:", b.Parts[7:9])
	}
}

// TestSpread thins 100 numbers of devices. Multiples of eight scale best.
func TestSpread(t *testing.T) {
	var groups [][]planner.Choice
	for n := 1; n <= 100; n++ {
		speed := float64(n)
		if n%8 != 0 {
			speed *= 0.9
		}
		groups = append(groups, []planner.Choice{choice(n, speed, 8)})
	}
	got := spread(groups, frontLines)
	var counts []int
	for _, g := range got {
		counts = append(counts, devices(&g[0]))
	}
	if len(counts) > frontLines || counts[0] != 1 || counts[len(counts)-1] != 100 || !slices.IsSorted(counts) {
		t.Errorf("%v, want up to %d from 1 to 100", counts, frontLines)
	}
	for _, n := range counts[len(counts)-4 : len(counts)-1] {
		if n%8 != 0 {
			t.Errorf("%v, of which %d scales worse than its neighbours", counts, n)
		}
	}
	if few := spread(groups[:frontLines], frontLines); len(few) != frontLines {
		t.Errorf("%d of %d groups", len(few), frontLines)
	}
}

func TestFrontChart(t *testing.T) {
	in := input()
	f := newFront(&in)
	if f.Note != "" || len(f.Table.Rows) != 3 {
		t.Errorf("%d rows, note %q", len(f.Table.Rows), f.Note)
	}
	want := []frontLine{
		{Devices: 1, GiB: []figure{12}, Speed: []figure{3}, Plans: []string{"dp=1,tp=1,pp=1,mb=13,ga=1,precision=bf16"}},
		{Devices: 4, GiB: []figure{8, 5}, Speed: []figure{10, 8}, Plans: []string{"dp=4,tp=1,pp=1,mb=9,ga=1,precision=bf16", "dp=4,tp=1,pp=1,mb=6,ga=1,precision=bf16"}},
	}
	if diff := cmp.Diff(&frontPoint{8, 10}, f.chart.Best); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, f.chart.Counts); diff != "" {
		t.Error(diff)
	}
}

func TestCurveChart(t *testing.T) {
	in := input()
	in.Curve.Points = append(in.Curve.Points, planner.CurvePoint{Devices: 5, Choice: in.Curve.Points[3].Choice})
	c := newCurve(&in)
	if len(c.Table.Rows) != 2 || c.First != 1 {
		t.Errorf("%d rows from %d devices, want the two changes from 1", len(c.Table.Rows), c.First)
	}
	k := c.chart
	if diff := cmp.Diff([]int{1, 4, 5}, k.Devices); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]figure{3, 10, 10}, k.Speed); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]figure{3, 12, 15}, k.Linear); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]figure{3, 2.5, 2}, k.PerDevice); diff != "" {
		t.Error(diff)
	}
	// Three devices add 7 samples/s, the fifth adds none.
	if !math.IsNaN(float64(k.Gain[0])) || k.Gain[1] != figure(7.0/3) || k.Gain[2] != 0 {
		t.Errorf("gains %v", k.Gain)
	}
	for i := range k.Speed {
		if !(k.Lo[i] < k.Speed[i] && k.Speed[i] < k.Hi[i]) {
			t.Errorf("%v is not in %v to %v", k.Speed[i], k.Lo[i], k.Hi[i])
		}
	}
}

// TestCurveOfOnePoint has no chart, but the first number of devices.
func TestCurveOfOnePoint(t *testing.T) {
	in := input()
	in.Curve.Points = in.Curve.Points[3:]
	if c := newCurve(&in); c.chart != nil || !c.Alone {
		t.Errorf("a chart %v of one point", c.chart)
	}
	if page := string(bare(t, in)); !strings.Contains(page, "On fewer than 4 devices no plan fits.") || strings.Contains(page, `id="gain"`) {
		t.Error("the page does not say that fewer devices do not do, or has room for a chart")
	}
}

// TestGoodputIsTheSpeed: under objective Goodput the charts draw goodput.
func TestGoodputIsTheSpeed(t *testing.T) {
	in := input()
	in.Request.Objective = planner.Goodput
	for i := range in.Curve.Points {
		in.Curve.Points[i].Choice.Efficiency = 0.5
	}
	k := newCurve(&in).chart
	if k.Speed[1] != 5 || k.Lo[1] != 4 || k.Hi[1] != 6 {
		t.Errorf("goodput %v in %v to %v, want 5 in 4 to 6", k.Speed[1], k.Lo[1], k.Hi[1])
	}
}
