package planner

import (
	"context"
	"math"
)

// TieProbability is the least probability of beating the best plan at which a plan
// cannot be distinguished from it.
const TieProbability = 0.1

// Ties returns how many plans cannot be distinguished from the best one, given the
// probabilities from BeatsBest.
func Ties(beatsBest []float64) (n int) {
	for _, p := range beatsBest {
		if p >= TieProbability {
			n++
		}
	}
	return n
}

// BeatsBest returns for each choice the probability that it is better than the
// first one under r's objective. The choices must be of one Ranking of r and fit.
// Errors of predictors that are not Correlated count as independent. The
// probability is NaN for the first choice, where neither prediction has an
// interval, and under objective MinDevices for choices with more devices.
//
// With ln(throughput) normal, of choice i against choice 0:
//
//	P = Φ((m[i] − m[0]) / √(C[i,i] + C[0,0] − 2·C[i,0]))
//
//	m  logarithm of the score at the median throughput
//	C  covariance of the errors of ln(throughput)
func (pl *Planner) BeatsBest(ctx context.Context, r Request, choices []Choice) ([]float64, error) {
	r, err := r.normal()
	if err != nil || len(choices) == 0 {
		return nil, err
	}
	out := make([]float64, 1, len(choices))
	out[0] = math.NaN()
	for rest := choices[1:]; len(rest) > 0; {
		n := min(len(rest), beatsChunk)
		field := append([]Choice{choices[0]}, rest[:n]...)
		cov, err := pl.covariance(ctx, field)
		if err != nil {
			return nil, err
		}
		for i := 1; i <= n; i++ {
			lead, ok := r.logLead(&field[i], &field[0])
			if variance := cov.At(i, i) + cov.At(0, 0) - 2*cov.At(i, 0); ok && (variance > 0 || cov.At(0, 0) > 0) {
				out = append(out, positive(lead, variance))
			} else {
				out = append(out, math.NaN())
			}
		}
		rest = rest[n:]
	}
	return out, nil
}

// beatsChunk is how many choices share a covariance matrix with the first one:
// the matrix grows with the square.
const beatsChunk = 64

// logLead returns by how much ln of what the objective counts is higher for a
// than for b; ok is false where the number of devices decides.
func (r *Request) logLead(a, b *Choice) (lead float64, ok bool) {
	if r.Objective == MinDevices {
		return math.Log(a.Prediction.Throughput / b.Prediction.Throughput), a.Config.Plan.Devices() == b.Config.Plan.Devices()
	}
	return r.logScore(a) - r.logScore(b), true
}

// positive returns the probability that a normal variable is above 0, half of it
// where it is 0 for certain.
func positive(mean, variance float64) float64 {
	switch {
	case variance > 0:
		return 0.5 * math.Erfc(-mean/math.Sqrt(2*variance))
	case mean == 0:
		return 0.5
	case mean > 0:
		return 1
	}
	return 0
}
