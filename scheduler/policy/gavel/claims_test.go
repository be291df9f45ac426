package gavel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// However ratios change and jobs come and go, claims are in the order that sorting them
// anew gives.
func TestClaimQueue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	var q claimQueue
	ranks := make([]int32, 200)
	right := make([]float64, len(ranks))
	for turn := range 300 {
		q.claims = q.claims[:0]
		for job := range ranks {
			if right[job] += random.Float64(); turn%50 == 0 {
				right[job] = float64(random.IntN(20)) // equal ones too, and nothing is as it was
			}
			if random.IntN(1+turn%20) == 0 {
				q.claims = append(q.claims, claim{ratio: right[job], job: int32(job), rank: ranks[job]})
			}
		}
		want := slices.SortedFunc(slices.Values(q.claims), compareClaims)
		got := q.sort(func(c claim, rank int32) { ranks[c.job] = rank })
		if len(got) != len(want) {
			t.Fatalf("turn %d: %d claims of %d", turn, len(got), len(want))
		}
		for i := range want {
			if got[i].job != want[i].job {
				t.Fatalf("turn %d: job %d comes at place %d, want %d", turn, got[i].job, i, want[i].job)
			}
		}
	}
}
