package memory

import (
	"errors"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Predictor is an optional interface of performance models with their own memory calibration, fitted to
// measured peaks. Implementations are safe for concurrent use.
type Predictor interface {
	// Memory returns the Estimator for c without its plan. Its Bytes equal the MemoryBytes of the model's
	// predictions. The Estimator belongs to the caller. The error wraps perfmodel.ErrNotCovered if the model
	// has no estimate.
	Memory(c spec.Config) (Estimator, error)
}

// Of returns the Estimator consistent with the predictions of p: p's own if p is a Predictor that covers c,
// else cal's. It ignores the plan of c. Errors are those of Predictor.Memory or of Calibration.For.
func Of(p perfmodel.Predictor, cal *Calibration, c spec.Config) (Estimator, error) {
	if own, ok := p.(Predictor); ok {
		e, err := own.Memory(c)
		if !errors.Is(err, perfmodel.ErrNotCovered) {
			return e, err
		}
	}
	return cal.For(c)
}
