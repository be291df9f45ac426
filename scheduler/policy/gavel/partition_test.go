package gavel

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// partShares returns jobs with random speeds on two types of devices.
func partShares(n int) *Shares {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	s := &Shares{Devices: []float64{float64(n) / 4, float64(n) / 4}}
	for i := range n {
		j := Share{State: &scheduler.JobState{Order: i, Job: &spec.Job{ID: spec.JobID(fmt.Sprint(i)), Devices: 1}, Remaining: 1}, Last: -1}
		for g := range s.Devices {
			j.Candidates = append(j.Candidates, Candidate{Group: g, Devices: 1, Rate: 0.5 + rng.Float64()})
		}
		j.X = make([]float64, 2)
		s.Jobs = append(s.Jobs, j)
	}
	return s
}

// In parts the fractions use at most the devices, and the sum of throughputs is at most and
// nearly that of the whole: with 200 jobs in 4 parts within 3 %. One part is the whole.
func TestPartitioned(t *testing.T) {
	total := func(parts int) (sum float64, used []float64) {
		s := partShares(200)
		f := fractions(maxTotal)
		if parts > 0 {
			f = partitioned(f, parts)
		}
		if err := f(context.Background(), s); err != nil {
			t.Fatal(err)
		}
		used = make([]float64, len(s.Devices))
		for i := range s.Jobs {
			j := &s.Jobs[i]
			sum += s.level(j) * j.Rate()
			time := 0.0
			for k, x := range j.X {
				time += x
				used[j.Candidates[k].Group] += x
			}
			if time > 1+1e-6 {
				t.Errorf("%d parts: job %d runs %g of the time", parts, i, time)
			}
		}
		return sum, used
	}
	whole, _ := total(0)
	for _, parts := range []int{1, 4, 300} {
		sum, used := total(parts)
		for g, n := range used {
			if n > 50+1e-6 {
				t.Errorf("%d parts use %g of 50 devices of group %d", parts, n, g)
			}
		}
		switch {
		case parts == 1 && math.Abs(sum/whole-1) > 1e-6, sum > whole*(1+1e-6), parts == 4 && sum < 0.97*whole:
			t.Errorf("%d parts: %g, the whole %g", parts, sum, whole)
		}
		t.Logf("%d parts: %.4f of the whole", parts, sum/whole)
	}
}

func BenchmarkPartitioned(b *testing.B) {
	for _, parts := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("jobs=400/parts=%d", parts), func(b *testing.B) {
			for b.Loop() {
				if err := partitioned(maxTotal, parts)(context.Background(), partShares(400)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
