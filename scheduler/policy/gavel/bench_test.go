package gavel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// drawShares draws jobs on a cluster of three types with a quarter as many devices
// of each, as in the paper's figure 12.
func drawShares(jobs int, seed uint64) *Shares {
	rng := rand.New(rand.NewPCG(seed, 0))
	s := &Shares{Devices: []float64{float64(jobs) / 4, float64(jobs) / 4, float64(jobs) / 4}}
	for i := range jobs {
		size := []int{1, 1, 1, 1, 1, 1, 1, 2, 4, 8}[rng.IntN(10)]
		j := Share{State: &scheduler.JobState{Remaining: 1e4 * (1 + rng.Float64()), Job: &spec.Job{
			ID: spec.JobID(fmt.Sprint(i)), Devices: size, Tenant: fmt.Sprint(rng.IntN(5))}}, Last: -1}
		for g, times := range []float64{1 + 9*rng.Float64(), 1 + 3*rng.Float64(), 1} {
			j.Candidates = append(j.Candidates, Candidate{Group: g, Devices: size, Rate: times})
			j.X = append(j.X, 0)
		}
		s.Jobs = append(s.Jobs, j)
	}
	return s
}

func BenchmarkFractions(b *testing.B) {
	for _, c := range []struct {
		name string
		jobs int
		f    func(context.Context, *Shares) error
	}{
		{"gavel-las", 64, func(ctx context.Context, s *Shares) error { return s.maxMinPrices(ctx) }},
		{"gavel-las", 2048, func(ctx context.Context, s *Shares) error { return s.maxMinPrices(ctx) }},
		{"gavel-las", 16384, func(ctx context.Context, s *Shares) error { return s.maxMinPrices(ctx) }},
		{"gavel-las-total", 2048, func(ctx context.Context, s *Shares) error { return s.maxMinProgram(ctx) }},
		{"gavel-makespan", 2048, minMakespan},
		{"gavel-hierarchical", 2048, func(ctx context.Context, s *Shares) error {
			h := hierarchy{}
			return s.waterfill(ctx, func(full []bool) []float64 { return h.split(s, full) })
		}},
		{"gavel-las-waterfill", 2048, func(ctx context.Context, s *Shares) error { return s.waterfill(ctx, s.weights) }},
	} {
		b.Run(fmt.Sprintf("policy=%s/jobs=%d", c.name, c.jobs), func(b *testing.B) {
			for b.Loop() {
				if err := c.f(b.Context(), drawShares(c.jobs, 2)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
