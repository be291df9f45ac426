package study

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Scenario changes the jobs of a workload by a seed and a load, in the same way for
// every scheduler.
type Scenario struct {
	Seed     uint64
	Arrivals Arrivals
	// Load is the device-seconds requested per second and device of the cluster:
	// the mean over the jobs of requested devices times run time on them, over the
	// mean time between arrivals times the cluster's devices. Times between
	// arrivals are stretched to reach it; 0 = unchanged.
	Load float64
	// Noise is the standard deviation of the logarithm of a factor on the duration
	// of each job, with expectation 1, drawn from the seed and the job's id.
	// Policies do not know it.
	Noise float64
}

// Jobs returns a copy of jobs, by submission, with random or stretched arrivals.
// Deadlines move with the submission.
func (s Scenario) Jobs(ctx context.Context, jobs []spec.Job, cl spec.Cluster, truth sim.Truth) ([]spec.Job, error) {
	out := slices.Clone(jobs)
	slices.SortStableFunc(out, func(a, b spec.Job) int { return cmp.Compare(a.Submit, b.Submit) })
	if s.Arrivals == Poisson {
		s.redraw(out)
	}
	if s.Load > 0 {
		natural, err := offered(ctx, out, cl, truth)
		if err != nil {
			return nil, err
		}
		first := out[0].Submit
		for i := range out {
			move(&out[i], float64(first)+float64(out[i].Submit-first)*natural/s.Load)
		}
	}
	for _, j := range out {
		if j.Submit < 0 || j.Submit > maxSubmit {
			return nil, fmt.Errorf("study: job %s would arrive after more than a hundred years at load %g", j.ID, s.Load)
		}
	}
	return out, nil
}

// maxSubmit is the latest arrival: a hundred years.
const maxSubmit = 100 * 365 * 24 * time.Hour

// redraw makes the arrivals of jobs a Poisson process with their rate and order.
func (s Scenario) redraw(jobs []spec.Job) {
	mean := between(jobs)
	arrivals := stats.Stream(s.Seed, "arrivals")
	at := float64(jobs[0].Submit)
	for i := range jobs {
		if i > 0 {
			at += arrivals.ExpFloat64() * mean
		}
		move(&jobs[i], at)
	}
}

// move sets the submission of j, in ns, and moves its deadline with it.
func move(j *spec.Job, at float64) {
	to := time.Duration(math.Round(min(at, math.MaxInt64/2)))
	if j.Deadline > 0 {
		j.Deadline += to - j.Submit
	}
	j.Submit = to
}

// between returns the mean time between the arrivals of sorted jobs in ns, 0
// for fewer than two.
func between(jobs []spec.Job) float64 {
	if len(jobs) < 2 {
		return 0
	}
	return float64(jobs[len(jobs)-1].Submit-jobs[0].Submit) / float64(len(jobs)-1)
}

// offered returns the load of sorted jobs.
func offered(ctx context.Context, jobs []spec.Job, cl spec.Cluster, truth sim.Truth) (float64, error) {
	gap := between(jobs) / 1e9
	if gap == 0 {
		return 0, fmt.Errorf("study: all %d jobs arrive at the same time, so they have no load: leave loads out", len(jobs))
	}
	var work float64
	for i := range jobs {
		sec, err := requestedSec(ctx, &jobs[i], cl, truth)
		if err != nil {
			return 0, err
		}
		work += float64(jobs[i].Devices) * sec
	}
	return work / float64(len(jobs)) / gap / float64(cl.Devices()), nil
}

// requestedSec returns the run time of j at its requested devices and plan, packed, on
// the first group that can run it.
func requestedSec(ctx context.Context, j *spec.Job, cl spec.Cluster, truth sim.Truth) (float64, error) {
	if j.Duration > 0 {
		return j.Duration.Seconds(), nil
	}
	err := fmt.Errorf("no group has accelerator %q", j.Accelerator)
	for i := range cl.Groups {
		group := &cl.Groups[i]
		if !j.Accepts(group) {
			continue
		}
		g := scheduler.Grant{Job: j.ID, Plan: j.Plan, Shape: spec.Packed(j.Devices, group.Devices), Slots: []scheduler.Slot{{Devices: j.Devices}}}
		var rate, steps float64
		if rate, err = truth.StepsPerSec(ctx, j, &g, group); err != nil {
			continue
		}
		if steps, err = truth.Steps(ctx, j); err == nil && rate > 0 {
			return steps / rate, nil
		}
	}
	return 0, fmt.Errorf("study: job %s has no duration and no known run time at its requested devices and plan: %w", j.ID, err)
}

// Truth returns truth with the noise of s.
func (s Scenario) Truth(truth sim.Truth) sim.Truth {
	if s.Noise == 0 {
		return truth
	}
	if pairs, ok := truth.(sim.Colocated); ok {
		return noisyPairs{noisy{truth, s}, pairs}
	}
	return noisy{truth, s}
}

// noisy is a truth with a random factor on the duration of each job.
type noisy struct {
	sim.Truth
	scenario Scenario
}

// StepsPerSec implements sim.Truth.
func (n noisy) StepsPerSec(ctx context.Context, j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) (float64, error) {
	rate, err := n.Truth.StepsPerSec(ctx, j, g, group)
	return rate / n.scenario.factor(j.ID), err
}

// noisyPairs is a noisy truth for jobs that share devices.
type noisyPairs struct {
	noisy
	pairs sim.Colocated
}

// StepsPerSecBeside implements sim.Colocated.
func (n noisyPairs) StepsPerSecBeside(ctx context.Context, j *spec.Job, g *scheduler.Grant, other *spec.Job, otherGrant *scheduler.Grant, group *spec.NodeGroup) (float64, error) {
	rate, err := n.pairs.StepsPerSecBeside(ctx, j, g, other, otherGrant, group)
	return rate / n.scenario.factor(j.ID), err
}

// factor returns the factor on a job's duration: log-normal with expectation 1.
func (s Scenario) factor(id spec.JobID) float64 {
	z := stats.Stream(s.Seed, "noise/"+string(id)).NormFloat64()
	return math.Exp(s.Noise*z - s.Noise*s.Noise/2)
}
