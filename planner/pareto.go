package planner

import (
	"cmp"
	"context"
	"slices"
)

// Pareto returns the choices of r that no other beats: none is at least as fast,
// with at most as much memory per device and as many devices, and better in one
// of them. Cost per sample follows from speed and devices, so nothing beats them
// in that either. Speed is throughput, or goodput under that objective, at the
// request's risk. They are ordered by devices, then speed, the fastest first; of
// equals the simplest plan is kept. Devices range from MinDevices, where that is
// set. Top limits how many of each number of devices are returned.
//
// The error wraps ErrInfeasible when nothing fits.
func (pl *Planner) Pareto(ctx context.Context, r Request) (Ranking, error) {
	r, err := r.normal()
	if err != nil {
		return Ranking{}, err
	}
	if r.Objective != Goodput {
		r.Objective = Throughput
	}
	var here []candidate // of one number of devices
	s := pl.newSearch(ctx, &r, func(c *candidate) { here = append(here, *c) })
	var below staircase
	var out Ranking
	from, to := r.counts()
	for n := from; n <= to; n++ {
		here = here[:0]
		for _, b := range r.batches() {
			if err := s.run(r.at(n, b)); err != nil {
				return Ranking{}, err
			}
		}
		out.Fitting += len(here)
		for i, k := range below.climb(here) {
			if r.Top > 0 && i >= r.Top {
				break
			}
			c, err := s.choice(k)
			if err != nil {
				return Ranking{}, err
			}
			out.Choices = append(out.Choices, c)
		}
	}
	if err := s.opinion(); err != nil {
		return Ranking{}, err
	}
	if len(out.Choices) == 0 {
		return Ranking{}, pl.infeasible(ctx, r)
	}
	out.Evaluated = s.evaluated
	return out, nil
}

// staircase is candidates of which none beats another in worth and bytes, by
// falling worth and so by falling bytes.
type staircase []candidate

// climb adds candidates and returns those of them that nothing beats, fastest
// first.
func (st *staircase) climb(more []candidate) []candidate {
	slices.SortFunc(more, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.bytes, b.bytes), comparePlans(&a.plan, &b.plan))
	})
	var kept []candidate
	for _, k := range more {
		if n := len(kept); (n == 0 || k.bytes < kept[n-1].bytes) && !st.beats(&k) {
			kept = append(kept, k)
		}
	}
	all := append(slices.Clone(*st), kept...)
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.bytes, b.bytes))
	})
	*st = (*st)[:0]
	for _, k := range all {
		if n := len(*st); n == 0 || k.bytes < (*st)[n-1].bytes {
			*st = append(*st, k)
		}
	}
	return kept
}

// beats reports whether some step is at least as fast as k and as small.
func (st staircase) beats(k *candidate) bool {
	// The slowest of those at least as fast needs the least memory.
	i, _ := slices.BinarySearchFunc(st, k.worth, func(s candidate, w float64) int {
		if s.worth >= w {
			return -1
		}
		return 1
	})
	return i > 0 && st[i-1].bytes <= k.bytes
}
