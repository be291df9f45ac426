package gavel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Shares is what an Objective is asked and, once it has filled in the fractions,
// its answer: the allocation X of Gavel (Narayanan et al., OSDI 2020, section 3),
// for each job and type of devices the fraction of time it is to hold some.
type Shares struct {
	Now      time.Duration
	Cluster  spec.Cluster
	Devices  []float64 // of each cluster group, of nodes that are up
	Jobs     []Share   // by arrival; a job that is predicted to run nowhere has no Ways
	Warnings []string  // what should be seen

	rules      Variant
	anyOptimum bool          // of equal optima any will do
	agnostic   bool          // all types are taken to be alike
	plans      bool          // a group may be there several times among the ways of a job
	sharing    bool          // as it may where jobs share devices
	used       map[side]bool // what of sharing was worth something in programmes so far
	tried      map[side]bool // and what was in programmes about these jobs
	pricing    *pricing
}

// Share is a job and what it is to get.
type Share struct {
	State *scheduler.JobState
	Ways  []Way     // ascending by group, then devices
	X     []float64 // of each of Ways, at least 0, in sum at most 1
	Last  int       // of Ways, the one it holds or held last; -1 = none

	candidateSet *candidateSet // what the ways are of, but for those beside others
	kind         int           // of jobs alike, where some may share devices; 0 = this one does not
}

// Way is how fast a job runs on so many devices of a group.
type Way struct {
	Group   int
	Devices int
	Rate    float64 // believed steps/s, above 0; 1 where nothing is believed
	Beside  int     // the kind of job that shares the devices, 0 = none does
}

// Objective says what is to become of the jobs.
type Objective struct {
	// Fractions fills in the X of every job, given as zeros, within what there is:
	// of no group more than its devices, of no job's time more than all of it.
	Fractions func(ctx context.Context, s *Shares) error
	// Strict: a job without any fraction does not run, even if devices are left.
	Strict bool
	// Agnostic objectives look at no rates.
	Agnostic bool
	// Sharing lets two jobs share devices: there may be ways beside others.
	Sharing bool
}

// Weight is the weight of the job, at least a thousandth, so that every job runs.
func (s *Share) Weight() float64 {
	if s.State.Job.Weight == 0 {
		return 1
	}
	return max(s.State.Job.Weight, 1e-3)
}

// Devices is how many devices the job asked for.
func (s *Share) Devices() float64 { return float64(s.State.Job.Devices) }

// Rate is the throughput the fractions come to, in steps/s.
func (s *Share) Rate() float64 {
	rate := 0.0
	for k, x := range s.X {
		rate += x * s.Ways[k].Rate
	}
	return rate
}

// fastest is the greatest throughput the job can have.
func (s *Share) fastest() float64 {
	rate := 0.0
	for _, w := range s.Ways {
		rate = max(rate, w.Rate)
	}
	return rate
}

// Even is the throughput of the job on a device drawn from all evenly: of a
// full share of the time, types in proportion to their devices. It is what
// Gavel divides throughputs by to compare jobs.
func (s *Shares) Even(j *Share) float64 {
	all, rate := 0.0, 0.0
	for _, n := range s.Devices {
		all += n
	}
	for _, w := range j.Ways {
		if w.Beside == 0 {
			rate += s.Devices[w.Group] / all * w.Rate
		}
	}
	return rate
}

// level returns the factor that makes a job's throughput comparable: s/(w·T),
// with s its devices, w its weight and T its throughput on a device drawn evenly
// (section 4.1). A wide job is to get as much device time as a narrow one, and so
// less of its time.
func (s *Shares) level(j *Share) float64 { return j.Devices() / (j.Weight() * s.Even(j)) }

// Isolated returns the fractions of a job that has an equal part of every group
// for itself, and of its time no more than all.
func (s *Shares) Isolated(j *Share) []float64 {
	part := func(group, devices int) float64 { return s.Devices[group] / float64(len(s.Jobs)) / float64(devices) }
	out := make([]float64, len(j.Ways))
	sum := 0.0
	for k, w := range j.Ways {
		if w.Beside == 0 {
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

// fill computes the fractions by an objective, if any job runs anywhere. The ways of jobs
// that can only run on nodes that are down are hidden from it.
func (s *Shares) fill(ctx context.Context, o Objective) error {
	up := func(w Way) bool { return s.Devices[w.Group] > 0 }
	hidden := map[int]Share{}
	for i := range s.Jobs {
		if j := &s.Jobs[i]; !slices.ContainsFunc(j.Ways, up) {
			hidden[i] = *j
			j.Ways, j.X, j.Last = nil, nil, -1
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

// sharesOf returns the ways of every job. A job that is predicted to run nowhere has none;
// the objective must leave it alone. The accounts are those of the jobs, nil for a new one.
// Its Jobs are valid until the next call.
func (o *candidates) sharesOf(ctx context.Context, s *scheduler.Snapshot, accounts []*account) (*Shares, error) {
	jobs := s.Jobs()
	o.shares = slices.Grow(o.shares[:0], len(jobs))
	out := &Shares{Now: s.Now, Cluster: s.Cluster, rules: o.rules, plans: o.plans, pricing: &o.pricing,
		Devices: make([]float64, len(s.Cluster.Groups)), Jobs: o.shares[:len(jobs)]}
	for g, group := range s.Cluster.Groups {
		out.Devices[g] = float64(group.Count * group.Devices)
	}
	for _, node := range s.Down {
		g := groupOf(s.Cluster, node)
		out.Devices[g] -= float64(s.Cluster.Groups[g].Devices)
	}
	ways := 0
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
		share.Ways = share.candidateSet.ways
		ways += len(share.Ways)
	}
	o.x = slices.Grow(o.x[:0], ways)
	x := o.x[:ways] // all fractions in one piece
	clear(x)
	for i := range out.Jobs {
		n := len(out.Jobs[i].Ways)
		out.Jobs[i].X, x = x[:n:n], x[n:]
	}
	return out, nil
}
