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

// candidateTable caches the candidates of each kind of job in each group of the cluster:
// its own device count with its own plan or, with plans, several device counts, each with
// the plan predicted best.
type candidateTable struct {
	*candidate.Finder
	rules   Variant
	plans   bool
	sets    map[candidate.SubmittedKey]*candidateSet
	pricing pricing   // reused memory of Shares.byPrices
	shares  []Share   // reused memory of sharesOf
	x       []float64 // reused memory of sharesOf
}

// candidateSet has the candidates of one kind of job.
type candidateSet struct {
	all     []Candidate
	options [][]candidate.Config // plans and shapes of each candidate, fastest first; none without a prediction
	warning string               // for the user, "" = none

	revision int // Finder.Revision when it was found
	priced   priced
}

// newCandidates returns an empty table. With plans, jobs may run with other plans and
// device counts than requested.
func newCandidates(d policy.Deps, plans bool) *candidateTable {
	return &candidateTable{Finder: candidate.NewFinder(d), rules: policy.VariantOf[Variant](d), plans: plans, sets: map[candidate.SubmittedKey]*candidateSet{}}
}

// of returns the candidates of j. The set is empty if j is predicted to run nowhere.
func (o *candidateTable) of(ctx context.Context, c spec.Cluster, j *spec.Job) (*candidateSet, error) {
	key := candidate.KeyOf(j)
	revision := o.Revision(c, j)
	if f, ok := o.sets[key]; ok && f.revision == revision {
		return f, nil
	}
	f, err := o.find(ctx, c, j)
	if err == nil {
		f.revision = revision
		o.sets[key] = f
	}
	return f, err
}

func (o *candidateTable) find(ctx context.Context, c spec.Cluster, j *spec.Job) (*candidateSet, error) {
	if o.plans {
		cv, err := o.Curve(ctx, c, j)
		if err != nil {
			return nil, err
		}
		if len(cv.Configs) > 0 {
			return newCandidateSet(slices.DeleteFunc(slices.Clone(cv.Configs), func(p candidate.Config) bool { return !considered(p.Devices, j.Devices) })), nil
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
	return o.withoutPrediction(ctx, c, j, w.Warning)
}

// considered limits device counts to the requested one and powers of two.
func considered(devices, requested int) bool { return devices == requested || devices&(devices-1) == 0 }

// newCandidateSet groups configurations by group and device count.
func newCandidateSet(options []candidate.Config) *candidateSet {
	options = slices.Clone(options)
	slices.SortStableFunc(options, func(a, b candidate.Config) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Devices, b.Devices), cmp.Compare(b.Rate, a.Rate))
	})
	f := &candidateSet{}
	for size := range candidate.BySize(options) {
		f.all = append(f.all, Candidate{Group: size[0].Group, Devices: size[0].Devices, Rate: size[0].Rate})
		f.options = append(f.options, size)
	}
	return f
}

// withoutPrediction returns a candidate of rate 1 for every group that j accepts and fits
// into. Groups where the oracle says that j is infeasible are left out.
func (o *candidateTable) withoutPrediction(ctx context.Context, c spec.Cluster, j *spec.Job, warning string) (*candidateSet, error) {
	f := &candidateSet{warning: warning}
	for gi := range c.Groups {
		g := &c.Groups[gi]
		if !j.Accepts(g) || g.MostDevices(j.Host) < j.Devices {
			continue
		}
		if o.Oracle != nil && j.Batch() > 0 {
			_, err := o.Oracle.Rank(ctx, candidate.RequestFor(j, g, j.Devices))
			if errors.Is(err, planner.ErrInfeasible) {
				continue
			}
		}
		f.all = append(f.all, Candidate{Group: gi, Devices: j.Devices, Rate: 1})
		f.options = append(f.options, nil)
	}
	if len(f.all) == 0 {
		f.warning = fmt.Sprintf("%s on %s runs on no type of devices of the cluster; such jobs wait", j.Model.Name, spec.Count(j.Devices, "device"))
	}
	return f, nil
}

// place returns a grant of candidate k of a set, nil if it does not fit.
func (o *candidateTable) place(free *scheduler.Inventory, j *spec.Job, f *candidateSet, k int) *scheduler.Grant {
	w := f.all[k]
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
