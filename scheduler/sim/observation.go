package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/scheduler"
)

// Observations feed a Learner: the mean step time of every job that has trained on its
// grant for a while, once per start.
type Observations struct {
	Learner scheduler.Learner // receives the observations
	// After is the training time before an observation, a step at least. The
	// observation is made at the next decision.
	After time.Duration
	// Sigma is the standard deviation of ln(observed/true time), 0..1: a factor of mean
	// 1, drawn from Seed, the job and the number of its starts.
	Sigma float64
	Seed  uint64
}

// Validate reports figures out of range.
func (s *Observations) Validate() error {
	switch {
	case s.Learner == nil:
		return errors.New("sim: observations without a learner")
	case s.After < 0 || s.After > defaultHorizon:
		return fmt.Errorf("sim: jobs are observed after %v, want 0..%v", s.After, defaultHorizon)
	case !(s.Sigma >= 0 && s.Sigma <= maxSigma):
		return fmt.Errorf("sim: step times are observed with a sigma of %g, want 0 to %d", s.Sigma, maxSigma)
	}
	return nil
}

// planObservation plans the observation of a job that holds devices from now on.
func (e *engine) planObservation(j *job) {
	if e.Observations != nil {
		e.observations.add(event{at: j.begin + max(e.Observations.After, seconds(1/j.progress.now.rate)), job: j, version: j.version})
	}
}

// observeDue makes the observations that are due. It precedes all other events of an
// instant, so that jobs that end at that instant are observed.
func (e *engine) observeDue() {
	for len(e.observations.Items) > 0 && e.observations.Items[0].at <= e.now {
		j, version := e.observations.Items[0].job, e.observations.Items[0].version
		if e.observations.Pop(); j.version != version {
			continue // its grant has changed
		}
		j.advance(e.now)
		if m, ok := e.measure(j); ok {
			e.observed = append(e.observed, m)
		}
	}
}

// measure returns the observation of j since it began to train, in steps of its plan.
// It returns false if no step is done, the devices are shared, or the batch may differ
// from the job's, since progress does not count such steps.
func (e *engine) measure(j *job) (m spec.Measurement, ok bool) {
	s := &j.state
	g, plan := s.Grant, s.Grant.Plan.Normal()
	steps := (s.Done - j.begun) * float64(s.Job.Batch()) / float64(plan.GlobalBatch())
	if g.Elastic || g.With != "" || sameBatch(s.Job, g) != nil || !(steps > 0) {
		return m, false
	}
	sec := (e.now - j.begin).Seconds() / steps
	if sigma := e.Observations.Sigma; sigma > 0 {
		z := stats.Stream(e.Observations.Seed, fmt.Sprintf("seen/%s/%d", s.Job.ID, s.Restarts+s.Failures)).NormFloat64()
		sec *= math.Exp(sigma*z - sigma*sigma/2)
	}
	if !finitePositive(sec) {
		return m, false
	}
	group := e.groupOf(g)
	return spec.Measurement{
		Config: Predicted{Cluster: e.Cluster}.config(s.Job, g, group), Outcome: spec.OK, StepSec: []float64{sec},
		Source: "run", Origin: string(s.Job.ID),
	}, true
}

// learn passes the observations since the last decision to the learner.
func (e *engine) learn(ctx context.Context) error {
	if e.Observations == nil {
		return nil
	}
	err := e.Observations.Learner.Learn(ctx, e.now, e.observed)
	e.observed = nil
	if err != nil {
		return fmt.Errorf("sim: %s at %v: %w", e.PolicyName, e.now, err)
	}
	return nil
}
