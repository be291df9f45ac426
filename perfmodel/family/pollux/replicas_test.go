package pollux

import (
	"errors"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
)

// TestFitReplicas: the fit of steps equals that of rows with the same values.
func TestFitReplicas(t *testing.T) {
	rows := measuredGrid(&truth, []int{4, 16, 64}, []int{1}, perftest.DataParallelShapes...)
	fitted, _ := perftest.Fit(t, SiaFamily, rows)
	var steps []ReplicaStep
	for i := len(rows) - 1; i >= 0; i-- { // in any order
		c, p := &rows[i].Config, rows[i].Config.Plan.Normal()
		steps = append(steps, ReplicaStep{Nodes: c.Shape.Nodes(), Replicas: p.DP, Micro: p.MicroBatch,
			StepSec: rows[i].MedianStepSec(), SyncSec: rows[i].PhaseSec["sync"]})
	}
	m, err := FitReplicas(steps)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range measuredGrid(&truth, []int{8, 32}, []int{1, 3}, []int{1}, []int{4}, []int{4, 4}) {
		want, err := fitted.Predict(t.Context(), r.Config)
		if err != nil {
			t.Fatal(err)
		}
		p := r.Config.Plan.Normal()
		got := float64(p.GlobalBatch()) / m.Seconds(r.Config.Shape.Nodes(), p.DP, p.MicroBatch, p.AccumSteps)
		if math.Abs(got/want.Throughput-1) > 1e-9 {
			t.Errorf("%s: %g samples/s, want %g", p, got, want.Throughput)
		}
	}

	if _, err := FitReplicas(nil); !errors.Is(err, perfmodel.ErrTooFewPoints) {
		t.Errorf("of no step: %v", err)
	}
	for _, bad := range []ReplicaStep{{1, 1, 0, 1, 0}, {0, 1, 1, 1, 0}, {1, 1, 1, 1, 1}, {1, 1, 1, 1, -1}, {1, 1, 1, math.NaN(), 0}, {1, 1, 1, math.Inf(1), 0}} {
		if _, err := FitReplicas([]ReplicaStep{bad}); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
