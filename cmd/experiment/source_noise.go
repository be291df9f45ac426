package experiment

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/scheduler"
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
	if out.pairs != nil {
		out.pairs = out.noisyPairs(out.pairs)
	}
	return out, nil
}

// noisy returns the predictor of a run with a seed.
func (s *Source) noisy(seed uint64) perfmodel.Predictor {
	if s.noise == 0 {
		return s.predictor
	}
	return noisyPredictor{s.predictor, noise{s.noise, seed}}
}

// noisyPairs returns what predicts colocated jobs with the errors of s.
func (s *Source) noisyPairs(exact func(seed uint64) scheduler.Colocator) func(seed uint64) scheduler.Colocator {
	return func(seed uint64) scheduler.Colocator { return noisyColocator{exact(seed), noise{s.noise, seed}} }
}

// noise is a random factor exp(sigma*z) for each configuration, with z standard normal. It depends on configuration and
// seed alone.
type noise struct {
	sigma float64
	seed  uint64
}

func (n noise) factor(c *spec.Config) float64 {
	name := fmt.Sprintf("noise/%s/%s/%d/%s/%s/%d/%g", c.Model.Name, c.Accelerator.Name, c.Seq(), c.Plan.Normal(), c.Shape.Devices, c.Shape.CPUs, c.Shape.HostBytes)
	return math.Exp(n.sigma * stats.Stream(n.seed, name).NormFloat64())
}

// noisyPredictor multiplies speeds by noise. It proves no bounds, and its intervals are those of the noise.
type noisyPredictor struct {
	exact perfmodel.Predictor
	noise
}

// Predict implements perfmodel.Predictor.
func (n noisyPredictor) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	p, err := n.exact.Predict(ctx, c)
	if err != nil {
		return p, err
	}
	p.Throughput *= n.factor(&c)
	p.Lo, p.Hi = p.Throughput*math.Exp(-stats.Normal90*n.sigma), p.Throughput*math.Exp(stats.Normal90*n.sigma)
	return p, nil
}

// noisyColocator multiplies the speed of a job that shares devices by its noise alone: the slow-down is exact.
type noisyColocator struct {
	exact scheduler.Colocator
	noise
}

// Beside implements scheduler.Colocator.
func (n noisyColocator) Beside(a, b spec.Config) (float64, error) {
	rate, err := n.exact.Beside(a, b)
	return rate * n.factor(&a), err
}
