package gavel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// sharingShares returns jobs of a number of kinds on two types of devices, most of them
// able to share devices, and their table of pairs.
func sharingShares(t *testing.T, random *rand.Rand, jobs, kinds int) *Shares {
	t.Helper()
	w := &schedulertest.World{}
	cluster := spec.Cluster{}
	for _, acc := range []string{"x", "y"} {
		cluster.Groups = append(cluster.Groups, spec.NodeGroup{Count: 1 + jobs/5, Devices: 1, Accelerator: spec.Accelerator{Name: acc}})
	}
	name := func(k int) string { return fmt.Sprintf("m%d", k) }
	for k := range kinds {
		for _, acc := range []string{"x", "y"} {
			w.Add(name(k), acc, schedulertest.OnePlan(1), spec.NewShape(1), 0.5+5*random.Float64())
		}
		for o := range k + 1 {
			if random.IntN(4) > 0 {
				w.Pair(name(k), name(o), 0.3+0.7*random.Float64(), 0.3+0.7*random.Float64())
			}
		}
	}
	var states []*scheduler.JobState
	for i := range jobs {
		j := &spec.Job{ID: spec.JobID(fmt.Sprintf("%03d", i)), Model: spec.Model{Name: name(random.IntN(kinds))}, Plan: schedulertest.OnePlan(1), Devices: 1, Weight: 1 + random.Float64()}
		states = append(states, &scheduler.JobState{Job: j, Remaining: 1000 * random.ExpFloat64()})
	}
	d := policy.Deps{Oracle: w.Oracle(0, 1)}
	m := newCandidates(d, false)
	s, err := m.sharesOf(t.Context(), scheduler.NewSnapshot(0, cluster, states), make([]*account, jobs))
	if err == nil {
		err = newPairTable(d, m).extend(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Column generation finds the optimum of the whole program, proven to 1e-8, and it is no
// worse than without sharing.
func TestByPairs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	gained := 0
	for range 30 {
		s := sharingShares(t, random, 2+random.IntN(30), 1+random.IntN(6))
		build := func() *program {
			p := s.program()
			least := p.Var("least level", -lp.Inf, lp.Inf, 1)
			for i := range s.Jobs {
				p.AtLeast("", 0, append(p.throughput(i, s.level(&s.Jobs[i])), lp.Term{Var: least, Coef: -1})...)
			}
			p.breakTies()
			return p
		}
		p := build()
		whole, err := p.Solve(t.Context(), lp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		few, err := p.byPairs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		alone, err := p.SolveOnly(t.Context(), p.columns(make([]bool, len(p.pairs))), lp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(whole.Objective-few.Objective) > 1e-7*(1+whole.Objective) || few.Residuals.Max() > 1e-8 {
			t.Errorf("%d jobs: %g with few pairings, residuals %+v, want %g", len(s.Jobs), few.Objective, few.Residuals, whole.Objective)
		}
		if few.Objective < alone.Objective-1e-7 {
			t.Errorf("%d jobs: %g with sharing, %g without", len(s.Jobs), few.Objective, alone.Objective)
		}
		if few.Objective > alone.Objective*1.01 {
			gained++
		}
	}
	if gained < 15 {
		t.Errorf("sharing raises the least level in %d of 30 cases", gained)
	}
}

// Two jobs that keep three quarters of their speed when sharing one device have 1.5 times
// the throughput of alternating. Of three such jobs each shares the device with one of the
// others two thirds of the time.
func TestSharingOfAFewJobs(t *testing.T) {
	for n, want := range map[int]float64{1: 1, 2: 0.75, 3: 0.5} {
		w := &schedulertest.World{}
		w.Add("m", "x", schedulertest.OnePlan(1), spec.NewShape(1), 1)
		w.Pair("m", "m", 0.75, 0.75)
		var states []*scheduler.JobState
		for i := range n {
			states = append(states, &scheduler.JobState{Remaining: 100, Job: &spec.Job{
				ID: spec.JobID(rune('a' + i)), Model: spec.Model{Name: "m"}, Plan: schedulertest.OnePlan(1), Devices: 1}})
		}
		d := policy.Deps{Oracle: w.Oracle(0, 1)}
		m := newCandidates(d, false)
		s, err := m.sharesOf(t.Context(), scheduler.NewSnapshot(0, schedulertest.Nodes(1, 1), states), make([]*account, n))
		if err == nil {
			err = newPairTable(d, m).extend(s)
		}
		if err == nil {
			err = s.maxMinProgram(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Jobs {
			if got := s.Jobs[i].Rate(); math.Abs(got-want) > 1e-4 {
				t.Errorf("%d jobs: job %d makes %g of what it makes alone, want %g", n, i, got, want)
			}
		}
	}
}
