package experiment

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// noisyBelief is the truth with errors: noisy:SIGMA.
func (s *Simulation) noisyBelief(ctx context.Context, truth, text string) (*Source, error) {
	name := "noisy:" + text
	sigma, err := strconv.ParseFloat(text, 64)
	if err != nil || !(sigma >= 0 && sigma <= 3) {
		return nil, invalid("belief", name, ": %q is not a standard deviation of ln(speed) in 0..3", text)
	}
	out, err := s.newSource(ctx, "belief", truth)
	if err != nil {
		return nil, err
	}
	if out.predictor == nil || out.tables != nil || out.servers != nil || out.nearest != nil {
		return nil, invalid("belief", name, "cannot be used with {truth} %s: use rubick:measured, gavel:FILE or fitted:FAMILY", truth)
	}
	out.Name, out.noise = name, sigma
	return out, nil
}

// noisy returns the predictor of a run with a seed.
func (s *Source) noisy(seed uint64) perfmodel.Predictor {
	if s.noise == 0 {
		return s.predictor
	}
	return noisyPredictor{s.predictor, s.noise, seed}
}

// noisyPredictor multiplies each speed by exp(sigma*z), with z standard normal: one draw for a
// configuration, whoever asks and when. It proves no bounds, and its intervals are those of the
// error.
type noisyPredictor struct {
	perfmodel.Predictor
	sigma float64
	seed  uint64
}

// Predict implements perfmodel.Predictor.
func (n noisyPredictor) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	p, err := n.Predictor.Predict(ctx, c)
	if err != nil {
		return p, err
	}
	name := fmt.Sprintf("noise/%s/%s/%d/%s/%s/%d/%g", c.Model.Name, c.Accelerator.Name, c.Seq(), c.Plan.Normal(), c.Shape.Devices, c.Shape.CPUs, c.Shape.HostBytes)
	p.Throughput *= math.Exp(n.sigma * stats.Stream(n.seed, name).NormFloat64())
	p.Lo, p.Hi = p.Throughput*math.Exp(-stats.Normal90*n.sigma), p.Throughput*math.Exp(stats.Normal90*n.sigma)
	return p, nil
}
