package accuracy

import (
	"math"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// figureNamed returns the figure of r with a name.
func figureNamed(t *testing.T, r *Result, name string) float64 {
	t.Helper()
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no figure %q in %v", name, r.Figures)
	}
	return r.Figures[i].Value
}

// TestOutliers: rows up to a thousand times too fast are held back, as are rows ten times too slow. Rows that were not
// altered are not, though a row with a factor of one is among those that are tried.
func TestOutliers(t *testing.T) {
	b := newBenchWith(t.Context(), Options{Shared: spectest.Shared(t), Seed: 2}, &trained)
	some := []alteration{alterations[0], {"times 10", 10, 10, 10, 0.95}, {"times 1", 10, 1, 1, 0}}
	r, err := outliers(t.Context(), b, contenderNamed(t, "hybrid"), some, 150)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Figures {
		t.Logf("%s: %g", f.Name, f.Value)
	}
	fast, slow := figureNamed(t, &r, "of rows times 0.001 to 0.1 beside 10 rows: held back"), figureNamed(t, &r, "of rows times 10 beside 10 rows: held back")
	same, impossible := figureNamed(t, &r, "of rows times 1 beside 10 rows: held back"), figureNamed(t, &r, "of rows times 0.001 to 0.1 beside 10 rows: impossible without the others")
	if fast < 1 || slow < 0.95 || same > 0.01 || impossible < 0.5 || impossible == 1 {
		t.Errorf("held back %.3f of the fast rows, %.3f of them as impossible, %.3f of the slow ones and %.3f of the same ones", fast, impossible, slow, same)
	}
	if tried := figureNamed(t, &r, "of rows times 10 beside 10 rows: number"); tried < 150 {
		t.Errorf("%g rows were altered, want at least 150", tried)
	}
	for _, name := range []string{"of unaltered rows: held back", "of unaltered rows: held back, worst source", "of unaltered rows beside an altered one: held back"} {
		if got := figureNamed(t, &r, name); got > 0.01 {
			t.Errorf("%s: %.4f, want 0.01 at most", name, got)
		}
	}
	if r.Rows < 1000 || figureNamed(t, &r, "of unaltered rows: sources") < 14 {
		t.Errorf("%d unaltered rows of %g sources, want all of them", r.Rows, figureNamed(t, &r, "of unaltered rows: sources"))
	}
}

// TestOutlierFigures: shares of two sources, worked out by hand.
func TestOutlierFigures(t *testing.T) {
	r := outlierFigures([]*watch{
		{rows: make([]spec.Measurement, 100), refused: 1, against: 2, beside: 30, misled: 3, caught: [][]bool{{true, true, true, false}}, impossible: []int{2}},
		{rows: make([]spec.Measurement, 300), beside: 30, caught: [][]bool{{true, true, true, true}}, impossible: []int{0}},
		{rows: make([]spec.Measurement, 100), caught: [][]bool{nil}, impossible: []int{0}},
		{caught: [][]bool{nil}, impossible: []int{0}},
	}, []alteration{{name: "times 2", good: 10}})
	for name, want := range map[string]float64{
		"of rows times 2 beside 10 rows: held back":                     7. / 8,
		"of rows times 2 beside 10 rows: standard error over sources":   0.125,
		"of rows times 2 beside 10 rows: impossible without the others": 2. / 8,
		"of rows times 2 beside 10 rows: number":                        8,
		"of unaltered rows: held back":                                  3. / 500,
		"of unaltered rows: standard error over sources":                0.01,
		"of unaltered rows: held back, worst source":                    0.03,
		"of unaltered rows beside an altered one: held back":            3. / 60,
		"of unaltered rows: sources":                                    3,
	} {
		if got := figureNamed(t, &r, name); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
	if r.Rows != 500 {
		t.Errorf("%d rows, want 500", r.Rows)
	}
}
