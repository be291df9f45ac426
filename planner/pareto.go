package planner

import (
	"cmp"
	"context"
	"slices"
)

// Pareto returns the Pareto front of r over speed, memory per device and number
// of devices: no other choice is at least as good in all three and better in one.
// Cost per sample follows from speed and devices, so that the front covers it.
// Speed is throughput, or goodput under that objective, at the request's risk.
//
// Choices are ordered by devices, then by descending speed; of equal ones the
// simplest plan is kept. Devices start at MinDevices, where that is set. Top limits
// the choices of each number of devices. The error wraps ErrInfeasible when
// nothing fits.
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
	var below frontier
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
		for i, k := range below.insert(here) {
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
	if err := s.checkCovered(); err != nil {
		return Ranking{}, err
	}
	if len(out.Choices) == 0 {
		return Ranking{}, pl.infeasible(ctx, r)
	}
	out.Evaluated = s.evaluated
	return out, nil
}

// frontier holds candidates that do not dominate each other in score and bytes,
// by descending score, and so by descending bytes.
type frontier []candidate

// insert adds candidates and returns those that no candidate dominates, the
// fastest first.
func (st *frontier) insert(more []candidate) []candidate {
	slices.SortFunc(more, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.bytes, b.bytes), comparePlans(&a.plan, &b.plan))
	})
	var kept []candidate
	for _, k := range more {
		if n := len(kept); (n == 0 || k.bytes < kept[n-1].bytes) && !st.beats(&k) {
			kept = append(kept, k)
		}
	}
	all := append(slices.Clone(*st), kept...)
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.bytes, b.bytes))
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
func (st frontier) beats(k *candidate) bool {
	// The slowest of those at least as fast needs the least memory.
	i, _ := slices.BinarySearchFunc(st, k.score, func(s candidate, w float64) int {
		if s.score >= w {
			return -1
		}
		return 1
	})
	return i > 0 && st[i-1].bytes <= k.bytes
}
