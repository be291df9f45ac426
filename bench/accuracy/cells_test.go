package accuracy

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// point is a measurement of a batch on a shape.
func point(batch int, sec float64, perNode ...int) spec.Measurement {
	s := spec.NewShape(perNode...)
	return spec.Measurement{StepSec: []float64{sec}, PhaseSec: map[string]float64{"sync": sec / 2}, Outcome: spec.OK,
		Config: spec.Config{Shape: s, Plan: spec.Plan{DP: s.Total(), MicroBatch: batch}.Normal()}}
}

func TestPoints(t *testing.T) {
	got := points([]spec.Measurement{point(8, 4, 1, 3), point(8, 2, 2, 2), point(8, 1, 4), point(16, 1, 4)})
	type seen struct {
		shape     string
		batch     int
		sec, sync float64
	}
	var have []seen
	for _, m := range got {
		have = append(have, seen{m.Config.Shape.Devices, m.Config.Plan.MicroBatch, m.MedianStepSec(), m.PhaseSec["sync"]})
	}
	want := []seen{{"4", 8, 1, 0.5}, {"4", 16, 1, 0.5}, {"2+2", 8, 3, 1.5}}
	if diff := cmp.Diff(want, have, cmp.AllowUnexported(seen{})); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

func TestSplits(t *testing.T) {
	pts := points([]spec.Measurement{point(4, 1, 1), point(8, 1, 1), point(4, 1, 2), point(8, 1, 2), point(2, 1, 1, 1),
		point(4, 1, 3), point(4, 1, 4), point(4, 1, 4, 4)})
	sizes := func(ss []split) (out [][2]int) {
		for _, s := range ss {
			out = append(out, [2]int{len(s.fit), len(s.test)})
		}
		return out
	}
	if diff := cmp.Diff([][2]int{{7, 1}}, sizes(beyondFour(pts, 1))); diff != "" {
		t.Errorf("beyond 4 GPUs (-want +got):\n%s", diff)
	}
	if s := beyondFour(pts[:3], 1); s != nil {
		t.Errorf("nothing is beyond 4 GPUs, but %v", sizes(s))
	}
	boot := bootstrap(pts, 1)
	if diff := cmp.Diff([][2]int{{3, 3}}, sizes(boot)); diff != "" {
		t.Errorf("bootstrap (-want +got):\n%s", diff)
	}
	if pair := boot[0].fit[2].Config; pair.Shape.Devices != "2" || pair.Plan.MicroBatch != 4 {
		t.Errorf("the point of 2 GPUs is %s at batch %d, want the smallest batch on one node", pair.Shape, pair.Plan.MicroBatch)
	}
	folds := foldsOf(pts, 1)
	scored := map[spec.Config]int{}
	for _, s := range folds {
		if len(s.fit)+len(s.test) != len(pts) {
			t.Errorf("%d points fitted, %d scored, of %d", len(s.fit), len(s.test), len(pts))
		}
		for _, m := range s.test {
			scored[m.Config]++
		}
	}
	for _, m := range pts {
		if scored[m.Config] != 1 {
			t.Errorf("%s is scored %d times", m.Config.Shape, scored[m.Config])
		}
	}
	if diff := cmp.Diff(sizes(folds), sizes(foldsOf(pts, 1))); diff != "" || folds[0].test[0].Config != foldsOf(pts, 1)[0].test[0].Config {
		t.Error("the same seed deals other folds")
	}
}

// TestCellsAreTheBaselines: as many points, and as many to fit, as the authors'
// model was fitted to.
func TestCellsAreTheBaselines(t *testing.T) {
	shared := spectest.Shared(t)
	lines := spectest.Records(t, "baselines/sia/pollux_model_fit_accuracy.csv")
	all, err := newBench(t.Context(), Options{Shared: shared}).siaCells()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string][]spec.Measurement{}
	for _, c := range all {
		have[c.name] = c.points
	}
	if len(all) != 30 || len(lines) != 31 {
		t.Fatalf("%d cells, %d of the baseline, want 30", len(all), len(lines)-1)
	}
	beyond := 0
	for _, l := range lines[1:] {
		pts := have[l[0]+" "+l[1]]
		if want := atoi(t, l[2]); len(pts) != want {
			t.Errorf("%s %s: %d points, want %d", l[0], l[1], len(pts), want)
			continue
		}
		if s := bootstrap(pts, 1); len(s[0].fit) != atoi(t, l[10]) {
			t.Errorf("%s %s: bootstrapped from %d points, want %s", l[0], l[1], len(s[0].fit), l[10])
		}
		if s := beyondFour(pts, 1); len(s) > 0 {
			beyond++
			if len(s[0].fit) != atoi(t, l[6]) || len(s[0].test) != atoi(t, l[7]) {
				t.Errorf("%s %s: %d points fitted, %d beyond, want %s and %s", l[0], l[1], len(s[0].fit), len(s[0].test), l[6], l[7])
			}
		}
	}
	if beyond != 24 {
		t.Errorf("%d cells have points beyond 4 GPUs, want 24", beyond)
	}
}

// atoi reads "50.0" as 50.
func atoi(t *testing.T, s string) int {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(v)
}
