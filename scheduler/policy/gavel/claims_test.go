package gavel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// However ratios change and jobs arrive and end, claims are in the order of a full sort.
func TestClaimQueue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	var q claimQueue
	ranks := make([]int32, 200)
	right := make([]float64, len(ranks))
	for iteration := range 300 {
		q.claims = q.claims[:0]
		for job := range ranks {
			if right[job] += random.Float64(); iteration%50 == 0 {
				right[job] = float64(random.IntN(20)) // with ties, and unrelated to the last order
			}
			if random.IntN(1+iteration%20) == 0 {
				q.claims = append(q.claims, claim{ratio: right[job], job: int32(job), rank: ranks[job]})
			}
		}
		want := slices.SortedFunc(slices.Values(q.claims), compareClaims)
		got := q.sort(func(c claim, rank int32) { ranks[c.job] = rank })
		if len(got) != len(want) {
			t.Fatalf("iteration %d: %d claims, want %d", iteration, len(got), len(want))
		}
		for i := range want {
			if got[i].job != want[i].job {
				t.Fatalf("iteration %d: job %d at position %d, want %d", iteration, got[i].job, i, want[i].job)
			}
		}
	}
}
