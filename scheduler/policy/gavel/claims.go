package gavel

import (
	"cmp"
	"slices"
)

// claim is an entry of the priority order of (job, candidate) pairs.
type claim struct {
	ratio          float64 // time owed over time received
	job, candidate int32
	rank           int32 // position in the last sorted order, from 1; 0 = new
}

// claimQueue sorts claims in reused memory.
type claimQueue struct {
	claims []claim
	sorted []claim
	placed []int32 // index into claims plus 1 for each rank; 0 = none
	ranks  int     // number of ranks in the last sorted order
}

// sort returns the claims in order. Ratios change slowly, so it starts from the last
// order, new claims at the end, and does an insertion sort. If that takes too many steps
// it falls back to a general sort. It calls remember with the new rank of each claim.
func (q *claimQueue) sort(remember func(c claim, rank int32)) []claim {
	const few = 12 // the usual number between the ends of leases
	if len(q.claims) <= few {
		slices.SortFunc(q.claims, compareClaims)
		return q.claims
	}
	q.recall()
	steps := 8 * len(q.sorted)
	for i, c := range q.sorted {
		at := i
		for at > 0 && c.before(&q.sorted[at-1]) {
			q.sorted[at] = q.sorted[at-1]
			at--
		}
		q.sorted[at] = c
		if steps -= i - at; steps < 0 {
			slices.SortFunc(q.sorted, compareClaims)
			break
		}
	}
	q.ranks = len(q.sorted)
	for i, c := range q.sorted {
		remember(c, int32(i+1))
	}
	return q.sorted
}

// recall puts the claims in the order of their ranks. If several claims have one rank,
// because all but one are outdated, the first has it and the others count as new.
func (q *claimQueue) recall() {
	q.placed = slices.Grow(q.placed[:0], q.ranks)[:q.ranks]
	clear(q.placed)
	for i := range q.claims {
		c := &q.claims[i]
		if r := int(c.rank) - 1; r >= 0 && r < q.ranks && q.placed[r] == 0 {
			q.placed[r] = int32(i + 1)
		} else {
			c.rank = 0
		}
	}
	q.sorted = q.sorted[:0]
	for _, i := range q.placed {
		if i > 0 {
			q.sorted = append(q.sorted, q.claims[i-1])
		}
	}
	for _, c := range q.claims {
		if c.rank == 0 {
			q.sorted = append(q.sorted, c)
		}
	}
}

// before reports whether c has priority over o: the higher ratio, then arrival.
func (c *claim) before(o *claim) bool {
	return c.ratio > o.ratio || c.ratio == o.ratio && (c.job < o.job || c.job == o.job && c.candidate < o.candidate)
}

// compareClaims gives the same order as claim.before.
func compareClaims(a, b claim) int {
	return cmp.Or(cmp.Compare(b.ratio, a.ratio), cmp.Compare(a.job, b.job), cmp.Compare(a.candidate, b.candidate))
}
