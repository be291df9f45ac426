package gavel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// candidates are the configurations of kinds of jobs in each group of a cluster: their own
// device count at their own plan, or with plans, several counts, each at its
// best believed plan.
type candidates struct {
	*candidate.Belief
	rules   Variant
	plans   bool
	known   map[candidate.SubmittedKey]*candidateSet
	pricing pricing   // scratch of Shares.byPrices
	shares  []Share   // scratch of sharesOf
	x       []float64 // and of its fractions
}

// candidateSet is the configurations of one kind of jobs.
type candidateSet struct {
	ways    []Way
	options [][]candidate.Config // of each way, fastest first; none for a blind one
	warning string               // what a user should know about it, "" if nothing

	revision int // belief.revision then
	priced   priced
}

// newCandidates returns the configurations of jobs, with other plans and device counts than a job
// asks for if plans is set.
func newCandidates(d policy.Deps, plans bool) *candidates {
	return &candidates{Belief: candidate.NewBelief(d), rules: policy.VariantOf[Variant](d), plans: plans, known: map[candidate.SubmittedKey]*candidateSet{}}
}

// of returns the configurations of j, none if it is predicted to run
// nowhere.
func (o *candidates) of(ctx context.Context, c spec.Cluster, j *spec.Job) (*candidateSet, error) {
	key := candidate.KeyOf(j)
	revision := o.Revision(c, j)
	if f, ok := o.known[key]; ok && f.revision == revision {
		return f, nil
	}
	f, err := o.find(ctx, c, j)
	if err == nil {
		f.revision = revision
		o.known[key] = f
	}
	return f, err
}

func (o *candidates) find(ctx context.Context, c spec.Cluster, j *spec.Job) (*candidateSet, error) {
	if o.plans {
		cv, err := o.Curve(ctx, c, j)
		if err != nil {
			return nil, err
		}
		if len(cv.Configs) > 0 {
			return newCandidateSet(slices.DeleteFunc(slices.Clone(cv.Configs), func(p candidate.Config) bool { return !worthListing(p.Devices, j.Devices) })), nil
		}
	}
	w, err := o.AsSubmitted(ctx, c, j)
	if err != nil {
		return nil, err
	}
	if !w.Blind {
		f := newCandidateSet(w.Configs)
		f.warning = w.Warning
		return f, nil
	}
	return o.blind(ctx, c, j, w.Warning)
}

// worthListing keeps the sizes few: what was asked for, and powers of two.
func worthListing(devices, asked int) bool { return devices == asked || devices&(devices-1) == 0 }

// newCandidateSet sorts options into ways.
func newCandidateSet(options []candidate.Config) *candidateSet {
	options = slices.Clone(options)
	slices.SortStableFunc(options, func(a, b candidate.Config) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Devices, b.Devices), cmp.Compare(b.Rate, a.Rate))
	})
	f := &candidateSet{}
	for _, p := range options {
		if n := len(f.ways); n == 0 || f.ways[n-1].Group != p.Group || f.ways[n-1].Devices != p.Devices {
			f.ways = append(f.ways, Way{Group: p.Group, Devices: p.Devices, Rate: p.Rate})
			f.options = append(f.options, nil)
		}
		last := len(f.ways) - 1
		f.options[last] = append(f.options[last], p)
	}
	return f
}

// blind lists every group that j accepts and fits into, all alike, unless the
// oracle says of each that j does not run there.
func (o *candidates) blind(ctx context.Context, c spec.Cluster, j *spec.Job, warning string) (*candidateSet, error) {
	f := &candidateSet{warning: warning}
	for gi := range c.Groups {
		g := &c.Groups[gi]
		if !candidate.Accepts(j, g) || g.MostDevices(j.Host) < j.Devices {
			continue
		}
		if o.Oracle != nil && j.Batch() > 0 {
			_, err := o.Oracle.Rank(ctx, candidate.RequestFor(j, g, j.Devices))
			if errors.Is(err, planner.ErrInfeasible) {
				continue
			}
		}
		f.ways = append(f.ways, Way{Group: gi, Devices: j.Devices, Rate: 1})
		f.options = append(f.options, nil)
	}
	if len(f.ways) == 0 {
		f.warning = fmt.Sprintf("%s on %s runs on none of the cluster's, such jobs wait", j.Model.Name, spec.Count(j.Devices, "device"))
	}
	return f, nil
}

// place returns a grant of way k of a candidateSet, nil if it finds no room.
func (o *candidates) place(free *scheduler.Inventory, j *spec.Job, f *candidateSet, k int) *scheduler.Grant {
	w := f.ways[k]
	if len(f.options[k]) > 0 {
		for i := range f.options[k] {
			if g := o.PlaceOption(free, j, &f.options[k][i]); g != nil {
				return g
			}
		}
		return nil
	}
	shape, ok := o.Lay(free, w.Group, j, w.Devices)
	if !ok {
		return nil
	}
	return o.PlaceOption(free, j, &candidate.Config{Group: w.Group, Plan: candidate.OwnPlan(j), Shape: shape, Devices: w.Devices})
}
