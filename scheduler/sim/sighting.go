package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Sightings let a belief learn: of every job that has trained on what it holds for
// a while the mean step time since it began to is told, once for each time it
// started.
type Sightings struct {
	Learner scheduler.Learner // who is told
	// After is how long a job trains before it is looked at, a step at least; the
	// look is taken at the next decision.
	After time.Duration
	// Sigma is the standard deviation of ln(time) of what is seen about what is
	// true, 0..1: a factor of expectation 1 for each time, drawn from Seed, the job
	// and how often it had devices before.
	Sigma float64
	Seed  uint64
}

// Validate reports figures out of range.
func (s *Sightings) Validate() error {
	switch {
	case s.Learner == nil:
		return errors.New("sim: sightings that nobody is told of")
	case s.After < 0 || s.After > defaultHorizon:
		return fmt.Errorf("sim: jobs are looked at after %v, want 0..%v", s.After, defaultHorizon)
	case !(s.Sigma >= 0 && s.Sigma <= maxSigma):
		return fmt.Errorf("sim: step times are seen with a sigma of %g, want 0 to %d", s.Sigma, maxSigma)
	}
	return nil
}

// lookAt plans a look at a job that holds devices from now on.
func (e *engine) lookAt(j *job) {
	if e.Sightings != nil {
		e.looks.push(event{at: j.begin + max(e.Sightings.After, seconds(1/j.course.now.rate)), job: j, version: j.version})
	}
}

// see takes the looks that are due. It comes before anything else that happens at
// a time: jobs that end then were seen before.
func (e *engine) see() {
	for len(e.looks.heap) > 0 && e.looks.heap[0].at <= e.now {
		j, version := e.looks.heap[0].job, e.looks.heap[0].version
		if e.looks.pop(); j.version != version {
			continue // it holds something else by now, or nothing
		}
		j.advance(e.now)
		if m, ok := e.measure(j); ok {
			e.sights = append(e.sights, m)
		}
	}
}

// measure returns what is seen of j since it began to train. The steps are those of
// its plan; false where none is done, the devices are shared, or another batch than
// the job's may be trained, whose steps its progress does not count.
func (e *engine) measure(j *job) (m spec.Measurement, ok bool) {
	s := &j.state
	g, plan := s.Grant, s.Grant.Plan.Normal()
	steps := (s.Done - j.begun) * float64(s.Job.Batch()) / float64(plan.GlobalBatch())
	if g.Elastic || g.With != "" || sameBatch(s.Job, g) != nil || !(steps > 0) {
		return m, false
	}
	sec := (e.now - j.begin).Seconds() / steps
	if sigma := e.Sightings.Sigma; sigma > 0 {
		z := stream(e.Sightings.Seed, fmt.Sprintf("seen/%s/%d", s.Job.ID, s.Restarts+s.Failures)).NormFloat64()
		sec *= math.Exp(sigma*z - sigma*sigma/2)
	}
	if !finitePositive(sec) {
		return m, false
	}
	group := &e.Cluster.Groups[e.groups[g.Slots[0].Node]]
	return spec.Measurement{
		Config: Predicted{Cluster: e.Cluster}.config(s.Job, g, group), Outcome: spec.OK, StepSec: []float64{sec},
		Source: "run", Origin: string(s.Job.ID),
	}, true
}

// teach tells what was seen since the last decision.
func (e *engine) teach(ctx context.Context) error {
	if e.Sightings == nil {
		return nil
	}
	err := e.Sightings.Learner.Learn(ctx, e.now, e.sights)
	e.sights = nil
	if err != nil {
		return fmt.Errorf("sim: %s at %v: %w", e.PolicyName, e.now, err)
	}
	return nil
}
