package gavel

import (
	"context"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// The example of the paper (Narayanan et al., Gavel, OSDI 2020, section 4.1), which
// gives X = (0.45 0; 0.45 0.09; 0.09 0.91) for one V100 and one K80: each job has
// 12/11 of the throughput of a third of both.
func TestPaperExample(t *testing.T) {
	s := &Shares{Devices: []float64{1, 1}}
	for i, rates := range [][]float64{{40, 10}, {12, 4}, {100, 50}} {
		s.Jobs = append(s.Jobs, Share{Last: -1, X: make([]float64, 2), State: &scheduler.JobState{Remaining: 1, Job: &spec.Job{ID: spec.JobID(fmt.Sprint(i)), Devices: 1}},
			Candidates: []Candidate{{Group: 0, Devices: 1, Rate: rates[0]}, {Group: 1, Devices: 1, Rate: rates[1]}}})
	}
	for _, name := range []string{"gavel-las", "gavel-las-waterfill"} {
		got := s.copyOf()
		if err := allFractions[name](t.Context(), got); err != nil {
			t.Fatal(err)
		}
		for i, want := range [][]float64{{5. / 11, 0}, {5. / 11, 1. / 11}, {1. / 11, 10. / 11}} {
			for k, x := range want {
				if math.Abs(got.Jobs[i].X[k]-x) > apart {
					t.Errorf("%s: job %d has %v, want %v", name, i, got.Jobs[i].X, want)
				}
			}
			third := (got.Jobs[i].Candidates[0].Rate + got.Jobs[i].Candidates[1].Rate) / 3
			if more := got.Jobs[i].Rate() / third; math.Abs(more-12./11) > apart {
				t.Errorf("%s: job %d has %g times a third of both, want 12/11", name, i, more)
			}
		}
	}
}

// No job prefers the share of another job of the same devices and weight, if the ratios of
// rates between types are equal for all jobs: their levels are then equal.
func TestNoEnvy(t *testing.T) {
	for _, name := range []string{"gavel-las", "gavel-las-waterfill"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := someShares(t)
				common := make([]float64, len(s.Devices))
				for g := range common {
					common[g] = rapid.Float64Range(0.1, 10).Draw(t, "rate")
				}
				for i := range s.Jobs { // all run everywhere
					j := &s.Jobs[i]
					job := *j.State.Job
					job.Weight, job.Devices = 1, min(job.Devices, int(leastOf(s.Devices)))
					unit := rapid.Float64Range(0.1, 10).Draw(t, "unit")
					j.State, j.Candidates, j.X = &scheduler.JobState{Job: &job, Remaining: 1}, nil, make([]float64, len(common))
					for g, r := range common {
						j.Candidates = append(j.Candidates, Candidate{Group: g, Devices: job.Devices, Rate: unit * r})
					}
				}
				if err := allFractions[name](context.Background(), s); err != nil {
					t.Fatal(err)
				}
				for i := range s.Jobs {
					for k := range s.Jobs {
						mine, theirs := s.Jobs[i], s.Jobs[k]
						theirs.Candidates = mine.Candidates
						if own := mine.Rate(); mine.Devices() == theirs.Devices() && theirs.Rate() > own+1e-4*(own+theirs.Rate()) {
							t.Fatalf("job %d makes %g steps/s, with what job %d has it would make %g", i, own, k, theirs.Rate())
						}
					}
				}
			})
		})
	}
}

// Sharing incentive of finish-time fairness and makespan: if all jobs begin at once, the
// last job ends no later than with 1/N of the cluster for each.
func TestSharingIncentiveOfFinishTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := someShares(t)
		if !s.runs() {
			return
		}
		jobs := (&finishTimes{}).update(s)
		alone := 0.0
		for _, j := range jobs {
			alone = math.Max(alone, j.alone)
		}
		fair := s.copyOf()
		if err := allFractions["gavel-ftf"](context.Background(), fair); err != nil {
			t.Fatal(err)
		}
		if rho := fair.greatestRho(jobs); rho > 1+1e-4 {
			t.Errorf("gavel-ftf: a job takes %g times as long as with an equal part", rho)
		}
		soon := s.copyOf()
		if err := allFractions["gavel-makespan"](context.Background(), soon); err != nil {
			t.Fatal(err)
		}
		last := 0.0
		for i := range soon.Jobs {
			if j := &soon.Jobs[i]; len(j.Candidates) > 0 {
				last = math.Max(last, j.State.Remaining/j.Rate())
			}
		}
		if last > alone*(1+2*tieBreak) {
			t.Errorf("gavel-makespan: all are done after %g s, with equal parts after %g s", last, alone)
		}
	})
}

// Twice the jobs on twice the devices give the same levels.
func TestScaling(t *testing.T) {
	for _, name := range []string{"gavel-las", "gavel-las:total", "gavel-las-waterfill", "gavel-makespan", "gavel-throughput", "gavel-ftf"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := someShares(t)
				if !s.runs() {
					return
				}
				twice := s.copyOf()
				twice.Devices = nil
				for _, n := range s.Devices {
					twice.Devices = append(twice.Devices, 2*n)
				}
				for _, j := range s.copyOf().Jobs {
					job := *j.State.Job
					job.ID = "twin-" + job.ID
					j.State = &scheduler.JobState{Job: &job, Remaining: j.State.Remaining}
					twice.Jobs = append(twice.Jobs, j)
				}
				for _, x := range []*Shares{s, twice} {
					if err := allFractions[name](context.Background(), x); err != nil {
						t.Fatal(err)
					}
				}
				a, b := objectiveOf(name, s), objectiveOf(name, twice)
				if name == "gavel-throughput" {
					b /= 2
				}
				if math.Abs(a-b) > 2e-4*max(1, math.Abs(a)) {
					t.Fatalf("%g, of twice as much of everything %g", a, b)
				}
			})
		})
	}
}
