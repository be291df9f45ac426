package gavel

import (
	"cmp"
	"slices"
)

// claim is a job's claim to devices of a way.
type claim struct {
	ratio    float64 // time owed over time received
	job, way int32
	rank     int32 // its place when it was sorted last, from 1 on; 0 = it never was
}

// claimQueue sorts claims, in memory that it uses again.
type claimQueue struct {
	claims []claim
	sorted []claim
	placed []int32 // by rank, which of claims had it, from 1 on; 0 = none
	ranks  int     // given when claims were sorted last
}

// sort returns the claims in order. What was owed and got changes slowly, so that
// few are far from where they were the last time: they are put in that order first,
// those without a rank behind, and each is then moved to its place. Where that turns
// out to be long ways they are sorted like anything else. It has each claim's new
// rank remembered.
func (q *claimQueue) sort(remember func(c claim, rank int32)) []claim {
	const few = 12 // between the ends of leases
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

// recall puts the claims in the order of their ranks. Of those of one rank, which is
// an old one of all but one, the first has it.
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

// before reports whether a comes first: the higher ratio, then by arrival.
func (c *claim) before(o *claim) bool {
	return c.ratio > o.ratio || c.ratio == o.ratio && (c.job < o.job || c.job == o.job && c.way < o.way)
}

// compareClaims orders as claim.before does.
func compareClaims(a, b claim) int {
	return cmp.Or(cmp.Compare(b.ratio, a.ratio), cmp.Compare(a.job, b.job), cmp.Compare(a.way, b.way))
}
