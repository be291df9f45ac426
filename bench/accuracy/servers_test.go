package accuracy

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func TestDrawServers(t *testing.T) {
	var pts []spec.Measurement
	for ps := 1; ps <= 5; ps++ {
		for w := 1; w <= 5; w++ {
			pts = append(pts, spec.Measurement{StepSec: []float64{1}, Config: spec.Config{Plan: spec.Plan{DP: w, ParamServers: ps}.Normal()}})
		}
	}
	first := map[spec.Config]bool{}
	for draw := range serverDraws {
		s := drawServers(pts, 1, "m", draw)
		seen := map[spec.Config]bool{}
		for _, m := range append(append([]spec.Measurement{}, s.fit...), s.test...) {
			seen[m.Config] = true
		}
		if len(s.fit) != serverPoints || len(seen) != len(pts) {
			t.Fatalf("draw %d: %d points fitted, %d different in all", draw, len(s.fit), len(seen))
		}
		first[s.fit[0].Config] = true
		if again := drawServers(pts, 1, "m", draw); again.fit[0].Config != s.fit[0].Config || again.test[3].Config != s.test[3].Config {
			t.Errorf("draw %d: the same seed draws other points", draw)
		}
	}
	if len(first) < 5 {
		t.Errorf("%d draws begin with %d different points", serverDraws, len(first))
	}
}

// TestServerJobs: the points of DL2 that did not fail, by model.
func TestServerJobs(t *testing.T) {
	jobs, err := newBench(t.Context(), Options{Shared: spectest.Shared(t)}).serverJobs()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, j := range jobs {
		n += len(j.points)
	}
	if len(jobs) != 8 || n != 794 {
		t.Errorf("%d models with %d points, want 8 with 794", len(jobs), n)
	}
}
