package campaign

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// measuredRow is a usable row, on one device or of one rank alone.
func measuredRow(alone int) spec.Measurement {
	return spec.Measurement{Outcome: spec.OK, StepSec: []float64{2}, PeakBytes: 8e9, At: time.Unix(2000, 0), Env: map[string]string{},
		Config: spec.Config{Model: spec.Model{Name: "m", SeqLen: 8}, Accelerator: spec.Accelerator{Name: "a"}, Plan: spec.Plan{DP: 2, MicroBatch: 1}.Normal(),
			Shape: spec.NewShape(2), AloneStage: alone}}
}

// TestScoreMemory: tensors are compared with tensors, and a device's memory with a device's.
func TestScoreMemory(t *testing.T) {
	m := measuredRow(0)
	p := Predictions{Created: time.Unix(1000, 0), Points: []PointPredicted{predictedPoint(profiler.Predicted{Config: m.Config,
		Prediction: spec.Prediction{Throughput: 1, MemoryBytes: 12e9}, Allocated: 9e9})}}
	for kind, want := range map[string]float64{"": 0.5, "allocated": 0.125} {
		m.Env[spec.EnvMemKind] = kind
		scored, _ := p.Score([]spec.Measurement{m})
		if len(scored) != 1 || math.Abs(scored[0].MemError-want) > 1e-9 {
			t.Errorf("kind %q: %+v, want an error of %g", kind, scored, want)
		}
	}
	p.Points[0].Allocated = 0 // a file without it
	if scored, _ := p.Score([]spec.Measurement{m}); len(scored) != 1 || scored[0].MemError != 0 && m.Env[spec.EnvMemKind] == "allocated" {
		t.Errorf("without allocated bytes: %+v", scored)
	}
}

// TestUnusable: rows of ranks alone can be fitted, rows in doubt cannot.
func TestUnusable(t *testing.T) {
	s := &Session{Campaign: profiler.Campaign{Name: "c"}}
	if err := s.Unusable([]spec.Measurement{measuredRow(1)}); err != nil {
		t.Errorf("a rank alone: %v", err)
	}
	doubted := measuredRow(0)
	doubted.Doubt = "shared"
	if err := s.Unusable([]spec.Measurement{doubted}); err == nil {
		t.Error("a row in doubt is usable")
	}
}
