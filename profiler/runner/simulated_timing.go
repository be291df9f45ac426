package runner

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/profiler"
)

// SimulatedTiming determines the step times of a runner that does not measure. The zero value returns at once
// and without noise. Results depend only on Seed and configuration, not on the order of the points.
type SimulatedTiming struct {
	// Noise is the standard deviation of ln(step time) between steps.
	Noise float64
	// Delay is the real duration of a point. The device time of a point is Delay plus its steps,
	// unless a replayed row records another one.
	Delay time.Duration
	Seed  uint64
	Steps int // steps per point, 0 = 20
}

const defaultSteps = 20

// steps returns random step times around sec seconds.
func (p SimulatedTiming) steps(c spec.Config, sec float64) []float64 {
	n := p.Steps
	if n <= 0 {
		n = defaultSteps
	}
	rng := stats.Stream(p.Seed, profiler.IdentityOf(c).String())
	out := make([]float64, n)
	for i := range out {
		out[i] = sec * math.Exp(p.Noise*rng.NormFloat64())
	}
	return out
}

// wait sleeps for Delay.
func (p SimulatedTiming) wait(ctx context.Context) error {
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

// setWallTime sets the time that m held its devices, unless m records it already.
func (p SimulatedTiming) setWallTime(m *spec.Measurement) {
	if m.Env[profiler.EnvWall] != "" {
		return
	}
	sec := p.Delay.Seconds()
	for _, t := range m.StepSec {
		sec += t
	}
	m.Env[profiler.EnvWall] = strconv.FormatFloat(sec, 'g', -1, 64)
}
