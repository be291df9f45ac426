package loss

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/scheduler"
)

// Synthetic is a scheduler.LossLog for the jobs of one simulation, which have no loss logs. It draws curves so that
// each job converges, by a criterion of its own, when its work is done.
type Synthetic struct {
	// Steps returns the work of a job in steps, as sim.Truth does.
	Steps func(ctx context.Context, j *spec.Job) (float64, error)
	// Sigma is the standard deviation of ln(loss) about the curve.
	Sigma float64
	Seed  uint64

	jobs map[int]*syntheticLog // by order of arrival
}

// syntheticLog is the log of a job.
type syntheticLog struct {
	curve    Curve
	interval float64 // steps
	least    float64 // decrease in the interval after the last
	points   []float64
	noise    *rand.Rand
}

// Ranges of the drawn parameters, log-uniform except for the floor. They do not reveal the length of a job: an
// interval is 1/20 to 1/200 of it.
const (
	minIntervals, maxIntervals = 20, 200
	minFall, maxFall           = 5, 50 // B0*k/B1 at the end
	minFloor, maxFloor         = 0.05, 0.4
)

// Log implements scheduler.LossLog. A job with unknown work has no log.
func (m *Synthetic) Log(ctx context.Context, j *scheduler.JobState) (scheduler.Losses, bool) {
	k, ok := m.jobs[j.Order]
	if !ok {
		k = m.draw(ctx, j)
		if m.jobs == nil {
			m.jobs = map[int]*syntheticLog{}
		}
		m.jobs[j.Order] = k
	}
	if k == nil {
		return scheduler.Losses{}, false
	}
	n := int(j.Done / k.interval)
	for len(k.points) < n {
		z := k.noise.NormFloat64()
		k.points = append(k.points, k.curve.At(float64(len(k.points)+1))*math.Exp(m.Sigma*z-m.Sigma*m.Sigma/2))
	}
	return scheduler.Losses{Every: k.interval, Values: k.points[:n:n], Least: k.least}, true
}

// draw returns the log of a job, nil if its work is unknown.
func (m *Synthetic) draw(ctx context.Context, j *scheduler.JobState) *syntheticLog {
	work, err := m.Steps(ctx, j.Job)
	if err != nil || !(work > 0) || math.IsInf(work, 0) {
		return nil
	}
	rng := m.stream("curve", j.Order)
	n := math.Round(between(rng, minIntervals, maxIntervals))
	floor := minFloor + (maxFloor-minFloor)*rng.Float64()
	c := Curve{B1: 1 / (1 - floor), B2: floor}
	c.B0 = between(rng, minFall, maxFall) * c.B1 / n
	return &syntheticLog{curve: c, interval: work / n, least: c.Falls(n), noise: m.stream("noise", j.Order)}
}

// between draws from a log-uniform distribution.
func between(rng *rand.Rand, lo, hi float64) float64 {
	return lo * math.Pow(hi/lo, rng.Float64())
}

// stream returns the random numbers of a job. They depend on its order of arrival, so that job names do not matter.
func (m *Synthetic) stream(name string, order int) *rand.Rand {
	return stats.Stream(m.Seed, fmt.Sprintf("loss/%s/%d", name, order))
}
