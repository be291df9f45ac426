package family

import (
	"context"
	"errors"
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// stacked is family "optimus" beside the opaque form of a job with parameter
// servers. Its share w makes the mean of the two best at rows neither has seen:
//
//	min Σ (w·a_i + (1-w)·b_i)² + s²·(w - ½)²,   0 <= w <= 1
//
// a and b are the left-out errors of ln T, s² their mean square: few rows leave
// the two equal. Source: Breiman, "Stacked Regressions", Machine Learning 1996.
type stacked struct {
	optimus perfmodel.Fitted
	share   float64
}

// stackServers returns nil where rows do not suffice for optimus without one of
// them.
func stackServers(ctx context.Context, f *opaqueFitted, rows []spec.Measurement) (*stacked, error) {
	fitted, _, err := fitOptimus(ctx, perfmodel.Rows(rows))
	if err != nil {
		return nil, dropTooFew(err)
	}
	var cross, apart, square float64
	for i := range rows {
		others := append(append([]spec.Measurement(nil), rows[:i]...), rows[i+1:]...)
		a, err := leftOutError(ctx, others, &rows[i])
		if err != nil {
			return nil, dropTooFew(err)
		}
		b := f.left[i]
		if math.IsNaN(b) {
			continue
		}
		cross += b * (b - a)
		apart += (a - b) * (a - b)
		square += (a*a + b*b) / float64(2*len(rows))
	}
	if apart+square == 0 {
		return nil, nil
	}
	return &stacked{optimus: fitted, share: min(max((cross+square/2)/(apart+square), 0), 1)}, nil
}

// dropTooFew returns nil for errors that say the rows do not suffice.
func dropTooFew(err error) error {
	if errors.Is(err, perfmodel.ErrTooFewPoints) || errors.Is(err, perfmodel.ErrNotCovered) {
		return nil
	}
	return err
}

// leftOutError is by how much ln T of row is above what optimus makes of others.
func leftOutError(ctx context.Context, others []spec.Measurement, row *spec.Measurement) (float64, error) {
	fitted, _, err := fitOptimus(ctx, perfmodel.Rows(others))
	if err != nil {
		return 0, err
	}
	p, err := fitted.Predict(ctx, row.Config)
	if err != nil {
		return 0, err
	}
	sec, _, _ := p.StepSec(row.Config.Plan.GlobalBatch())
	return math.Log(row.MedianStepSec() / sec), nil
}

// move shifts an opaque prediction to the mean of the two.
func (s *stacked) move(ctx context.Context, c *spec.Config, p spec.Prediction) spec.Prediction {
	other, err := s.optimus.Predict(ctx, *c)
	if err != nil {
		return p
	}
	f := math.Pow(other.Throughput/p.Throughput, s.share)
	p.Throughput, p.Lo, p.Hi = p.Throughput*f, p.Lo*f, p.Hi*f
	return p
}
