package runner

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// Play is how a runner that measures nothing behaves. The zero value answers at
// once and without noise. What it does is decided by Seed and configuration
// alone, not by the order of the points.
type Play struct {
	// Noise is the standard deviation of the logarithm of step times from step
	// to step.
	Noise float64
	// Delay is how long a point really takes. The device time of a point is this
	// and its steps, unless a replayed row knows better.
	Delay time.Duration
	Seed  uint64
	Steps int // per point, 0 = 20
}

const playSteps = 20

// steps returns step times around sec.
func (p Play) steps(c spec.Config, sec float64) []float64 {
	n := p.Steps
	if n <= 0 {
		n = playSteps
	}
	h := fnv.New64a()
	h.Write([]byte(profiler.IdentityOf(c).String()))
	rng := rand.New(rand.NewPCG(p.Seed, h.Sum64()))
	out := make([]float64, n)
	for i := range out {
		out[i] = sec * math.Exp(p.Noise*rng.NormFloat64())
	}
	return out
}

// wait lets Delay pass.
func (p Play) wait(ctx context.Context) error {
	if p.Delay <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(p.Delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hold says how long m held its devices, if it does not yet.
func (p Play) hold(m *spec.Measurement) {
	if m.Env[profiler.EnvWall] != "" {
		return
	}
	sec := p.Delay.Seconds()
	for _, t := range m.StepSec {
		sec += t
	}
	m.Env[profiler.EnvWall] = strconv.FormatFloat(sec, 'g', -1, 64)
}
