package memory

import (
	"errors"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Predictor is an optional interface of performance models with a memory
// calibration of their own, fitted to measured peaks. Implementations are safe
// for concurrent use.
type Predictor interface {
	// Memory fixes everything in c but its plan. The Estimator's Bytes are the
	// MemoryBytes of the model's own predictions. The error wraps
	// perfmodel.ErrNotCovered where the model has no estimate.
	Memory(c spec.Config) (Estimator, error)
}

// Of returns the Estimator that goes with the predictions of p: p's own where it
// is a Predictor that covers c, else cal's. It fixes everything in c but its plan.
func Of(p perfmodel.Predictor, cal *Calibration, c spec.Config) (Estimator, error) {
	if own, ok := p.(Predictor); ok {
		e, err := own.Memory(c)
		if !errors.Is(err, perfmodel.ErrNotCovered) {
			return e, err
		}
	}
	return cal.For(c)
}
