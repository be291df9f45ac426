package memory

import (
	"errors"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Predictor is an optional interface of performance models that know more of
// memory than what is shipped: those fitted to measured peaks.
type Predictor interface {
	// Memory fixes everything in c but its plan. The Estimator's Bytes are the
	// MemoryBytes of the model's own predictions. The error wraps
	// perfmodel.ErrNotCovered where the model has no opinion.
	Memory(c spec.Config) (Estimator, error)
}

// Of returns the Estimator of everything in c but its plan that goes with the
// predictions of p: its own where p is a Predictor that covers c, else cal's.
func Of(p perfmodel.Predictor, cal *Calibration, c spec.Config) (Estimator, error) {
	if own, ok := p.(Predictor); ok {
		e, err := own.Memory(c)
		if !errors.Is(err, perfmodel.ErrNotCovered) {
			return e, err
		}
	}
	return cal.For(c)
}
