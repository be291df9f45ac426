package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// Synthetic returns the prediction of a performance model, plus noise. It is for tests and demonstrations: its
// results are not measured.
type Synthetic struct {
	// Truth predicts the step time, and the memory if it can; otherwise perfmodel/memory estimates the memory.
	Truth perfmodel.Predictor
	// MemBytes is the memory of a device, 0 = that of the accelerator. A point that needs more ends with OOM.
	// If both are 0, there is no limit.
	MemBytes float64
	Timing   SimulatedTiming
}

// Run implements profiler.Runner. A configuration that Truth does not cover has the outcome Failed.
func (s *Synthetic) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	if err := s.Timing.wait(ctx); err != nil {
		return spec.Measurement{}, err
	}
	m := spec.Measurement{Config: c, Outcome: spec.OK, Env: map[string]string{}}
	p, err := s.Truth.Predict(ctx, c)
	switch {
	case errors.Is(err, perfmodel.ErrNotCovered):
		m.Outcome, m.Reason = spec.Failed, err.Error()
		return m, nil
	case err != nil:
		return spec.Measurement{}, fmt.Errorf("runner: synthetic: %w: %w", profiler.ErrSetup, err)
	}
	need := p.MemoryBytes
	if b, err := memory.Estimate(c); need == 0 && err == nil {
		need = b.Total()
	}
	limit := s.MemBytes
	if limit == 0 {
		limit = c.Accelerator.MemBytes
	}
	if limit > 0 && need > limit {
		m.Outcome = spec.OOM
		m.Reason = fmt.Sprintf("needs %.1f GiB of %.1f", need/memory.GiB, limit/memory.GiB)
	} else {
		sec, _, _ := p.StepSec(c.Plan.GlobalBatch())
		m.StepSec, m.PeakBytes = s.Timing.steps(c, sec), need
	}
	s.Timing.setWallTime(&m)
	return m, nil
}
