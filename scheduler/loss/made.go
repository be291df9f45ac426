package loss

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Made are logs for jobs of a simulation, which have none: curves drawn such that
// each job converges, by a criterion of its own, when its work is done. It is a
// scheduler.LossLog for one run.
type Made struct {
	// Steps returns the work of a job; sim.Truth has it.
	Steps func(ctx context.Context, j *spec.Job) (float64, error)
	// Sigma is the standard deviation of ln(loss) of a point about the curve.
	Sigma float64
	Seed  uint64

	jobs map[int]*made // by order of arrival
}

// made is the log of a job.
type made struct {
	curve   Curve
	stretch float64 // steps
	least   float64 // by which it falls in the stretch after the last
	points  []float64
	noise   *rand.Rand
}

// What is drawn of a curve, uniformly in the logarithm but for the floor. Nothing of
// it tells how long the job is: one stretch is some 1/20 to 1/200 of it.
const (
	fewestStretches, mostStretches = 20, 200
	leastFall, mostFall            = 5, 50 // B0*k/B1 at the end
	leastFloor, mostFloor          = 0.05, 0.4
)

// Log implements scheduler.LossLog. Jobs whose work is not known have none.
func (m *Made) Log(ctx context.Context, j *scheduler.JobState) (scheduler.Losses, bool) {
	k, ok := m.jobs[j.Order]
	if !ok {
		k = m.draw(ctx, j)
		if m.jobs == nil {
			m.jobs = map[int]*made{}
		}
		m.jobs[j.Order] = k
	}
	if k == nil {
		return scheduler.Losses{}, false
	}
	n := int(j.Done / k.stretch)
	for len(k.points) < n {
		z := k.noise.NormFloat64()
		k.points = append(k.points, k.curve.At(float64(len(k.points)+1))*math.Exp(m.Sigma*z-m.Sigma*m.Sigma/2))
	}
	return scheduler.Losses{Every: k.stretch, Values: k.points[:n:n], Least: k.least}, true
}

// draw returns the log of a job, nil where its work is not known.
func (m *Made) draw(ctx context.Context, j *scheduler.JobState) *made {
	work, err := m.Steps(ctx, j.Job)
	if err != nil || !(work > 0) || math.IsInf(work, 0) {
		return nil
	}
	rng := m.stream("curve", j.Order)
	n := math.Round(between(rng, fewestStretches, mostStretches))
	floor := leastFloor + (mostFloor-leastFloor)*rng.Float64()
	c := Curve{B1: 1 / (1 - floor), B2: floor}
	c.B0 = between(rng, leastFall, mostFall) * c.B1 / n
	return &made{curve: c, stretch: work / n, least: c.Falls(n), noise: m.stream("noise", j.Order)}
}

// between draws uniformly in the logarithm.
func between(rng *rand.Rand, lo, hi float64) float64 {
	return lo * math.Pow(hi/lo, rng.Float64())
}

// stream goes by the order of arrival, so that what jobs are called does not matter.
func (m *Made) stream(name string, order int) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "loss/%s/%d", name, order) // a hash never fails
	return rand.New(rand.NewPCG(m.Seed, h.Sum64()))
}
