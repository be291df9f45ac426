package registry

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Prepare implements perfmodel.Preparer, also for models that do not implement it.
func (p *predictor) Prepare(c spec.Config) (perfmodel.Prepared, error) {
	if f, ok := p.find(&c).(perfmodel.Preparer); ok {
		return f.Prepare(c)
	}
	return perfmodel.PreparedFunc(func(plan spec.Plan, seq int) (spec.Prediction, error) {
		of := c
		of.Plan, of.SeqLen = plan, seq
		out, err := p.Predict(context.Background(), of)
		out.MemoryBytes, out.AllocatedBytes, out.ReservedBytes = 0, 0, 0
		return out, err
	}), nil
}

// StepAtLeast implements perfmodel.Bounder; it returns nil if the model for c's key has no bound.
func (p *predictor) StepAtLeast(c spec.Config) (perfmodel.StepBound, error) {
	if f, ok := p.find(&c).(perfmodel.Bounder); ok {
		return f.StepAtLeast(c)
	}
	return nil, nil
}

// HostRegular reports whether every model is regular in host resources (see planner.HostRegular).
func (p *predictor) HostRegular() bool {
	regular := func(m perfmodel.Predictor) bool {
		r, ok := m.(interface{ HostRegular() bool })
		return ok && r.HostRegular()
	}
	for _, f := range p.fitted {
		if !regular(f) {
			return false
		}
	}
	return p.unfitted == nil || regular(p.unfitted)
}
