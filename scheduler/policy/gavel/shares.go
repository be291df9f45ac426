package gavel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Shares is the input of an Objective and, with the fractions filled in, its output: the
// allocation X of Gavel (section 3), the fraction of time of each job on each type of
// devices.
type Shares struct {
	Now      time.Duration
	Cluster  spec.Cluster
	Devices  []float64 // of each cluster group, of nodes that are up
	Jobs     []Share   // by arrival; a job that is predicted to run nowhere has no Candidates
	Warnings []string  // for the user

	rules      Variant
	anyOptimum bool          // do not break ties among optima
	agnostic   bool          // all types have equal rates
	plans      bool          // a job may have several candidates per group
	sharing    bool          // candidates may have partners
	used       map[side]bool // pairings with time in the last solution
	tried      map[side]bool // pairings added in programs for these jobs
	pricing    *pricing
}

// Share is a job with its candidates and its fraction of time on each.
type Share struct {
	State      *scheduler.JobState
	Candidates []Candidate // ascending by group, then devices
	X          []float64   // fraction of each candidate, at least 0; the sum is at most 1
	Last       int         // index of the candidate it holds or held last; -1 = none

	candidateSet *candidateSet // the candidates without a partner
	kind         int           // kind of the job; 0 = it cannot share devices
}

// Candidate is a number of devices of a group for a job, with its rate there.
type Candidate struct {
	Group   int
	Devices int
	Rate    float64 // predicted steps/s, above 0; 1 without a prediction
	Partner int     // kind of the job on the same devices, 0 = none
}

// Objective is a scheduling objective of Gavel.
type Objective struct {
	// Fractions fills in the X of every job, initially zero. The jobs use at most the
	// devices of each group; the X of a job add up to at most 1.
	Fractions func(ctx context.Context, s *Shares) error
	// Strict objectives leave devices idle: a job without any fraction does not run.
	Strict bool
	// Agnostic objectives ignore rates.
	Agnostic bool
	// Sharing lets two jobs share devices: candidates may have partners.
	Sharing bool
}

// Weight is the weight of the job, default 1, at least 0.001 so that every job runs.
func (s *Share) Weight() float64 {
	if s.State.Job.Weight == 0 {
		return 1
	}
	return max(s.State.Job.Weight, 1e-3)
}

// Devices is the number of devices the job requests.
func (s *Share) Devices() float64 { return float64(s.State.Job.Devices) }

// Rate is the throughput under the fractions, in steps/s.
func (s *Share) Rate() float64 {
	rate := 0.0
	for k, x := range s.X {
		rate += x * s.Candidates[k].Rate
	}
	return rate
}

// fastest is the highest rate of the candidates.
func (s *Share) fastest() float64 {
	rate := 0.0
	for _, w := range s.Candidates {
		rate = max(rate, w.Rate)
	}
	return rate
}

// Even is the throughput of the job if it ran all the time, on each type in proportion to
// its number of devices. Gavel normalises throughputs by it.
func (s *Shares) Even(j *Share) float64 {
	all, rate := 0.0, 0.0
	for _, n := range s.Devices {
		all += n
	}
	for _, w := range j.Candidates {
		if w.Partner == 0 {
			rate += s.Devices[w.Group] / all * w.Rate
		}
	}
	return rate
}

// level returns the factor of the normalised throughput (section 4.1), s/(w·T):
//
//	s  devices of the job
//	w  its weight
//	T  its throughput on an even share of the types, see Even
//
// The level of a job is this factor times its throughput. Equal levels mean equal device
// time, so a job with many devices runs a smaller fraction of the time.
func (s *Shares) level(j *Share) float64 { return j.Devices() / (j.Weight() * s.Even(j)) }

// Isolated returns the fractions of a job that has 1/N of every group for itself, scaled
// down so that they add up to at most 1.
func (s *Shares) Isolated(j *Share) []float64 {
	part := func(group, devices int) float64 { return s.Devices[group] / float64(len(s.Jobs)) / float64(devices) }
	out := make([]float64, len(j.Candidates))
	sum := 0.0
	for k, w := range j.Candidates {
		if w.Partner == 0 {
			out[k] = part(w.Group, w.Devices)
			sum += out[k]
		}
	}
	if s.rules.ZerosCount {
		sum = 0
		for g := range s.Devices {
			sum += part(g, j.State.Job.Devices)
		}
	}
	if sum > 1 {
		for k := range out {
			out[k] /= sum
		}
	}
	return out
}

// fill computes the fractions by an objective if any job can run. It hides the candidates
// of jobs that can only run on nodes that are down.
func (s *Shares) fill(ctx context.Context, o Objective) error {
	up := func(w Candidate) bool { return s.Devices[w.Group] > 0 }
	hidden := map[int]Share{}
	for i := range s.Jobs {
		if j := &s.Jobs[i]; !slices.ContainsFunc(j.Candidates, up) {
			hidden[i] = *j
			j.Candidates, j.X, j.Last = nil, nil, -1
		}
	}
	if len(hidden) < len(s.Jobs) {
		if err := o.Fractions(ctx, s); err != nil {
			return fmt.Errorf("policy: fractions of %d jobs at %v: %w", len(s.Jobs), s.Now, err)
		}
	}
	for i, j := range hidden {
		s.Jobs[i] = j
	}
	return nil
}

// sharesOf returns the candidates of every job; a job that is predicted to run nowhere has
// none. accounts are those of the jobs, nil for a new job. The result is valid until the
// next call.
func (o *candidateTable) sharesOf(ctx context.Context, s *scheduler.Snapshot, accounts []*account) (*Shares, error) {
	jobs := s.Jobs()
	o.shares = slices.Grow(o.shares[:0], len(jobs))
	out := &Shares{Now: s.Now, Cluster: s.Cluster, rules: o.rules, plans: o.plans, pricing: &o.pricing,
		Devices: make([]float64, len(s.Cluster.Groups)), Jobs: o.shares[:len(jobs)]}
	for g, group := range s.Cluster.Groups {
		out.Devices[g] = float64(group.Count * group.Devices)
	}
	for _, node := range s.Down {
		g := s.Cluster.GroupOf(node)
		out.Devices[g] -= float64(s.Cluster.Groups[g].Devices)
	}
	total := 0
	for i, j := range jobs {
		share := &out.Jobs[i]
		*share = Share{State: j, Last: -1}
		if k := accounts[i]; k != nil {
			share.candidateSet, share.Last = k.candidateSet, k.last
		} else {
			var err error
			if share.candidateSet, err = o.of(ctx, s.Cluster, j.Job); err != nil {
				return nil, err
			}
		}
		if share.candidateSet.warning != "" {
			out.Warnings = append(out.Warnings, share.candidateSet.warning)
		}
		share.Candidates = share.candidateSet.all
		total += len(share.Candidates)
	}
	o.x = slices.Grow(o.x[:0], total)
	x := o.x[:total] // the fractions of all jobs in one slice
	clear(x)
	for i := range out.Jobs {
		n := len(out.Jobs[i].Candidates)
		out.Jobs[i].X, x = x[:n:n], x[n:]
	}
	return out, nil
}
