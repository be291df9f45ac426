package gavel

import (
	"context"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var FTF = policy.Info{
	Name:    "gavel-ftf",
	Doc:     "finish-time fairness: minimises the greatest ratio of finish time to that with an equal part of the cluster (Narayanan et al., Gavel, OSDI 2020, section 4.2)",
	Options: solving,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		f := &finishTimes{}
		return solved(d, Objective{}, f.fractions)
	},
}

// finishTimes keeps how long what jobs have done would have taken with an equal
// part of the cluster for each.
type finishTimes struct {
	isolated map[spec.JobID]isolatedTime
}

type isolatedTime struct {
	done float64 // steps
	sec  float64 // they would have taken
	rate float64 // steps/s from then on
}

// finish is what one job's ratio is made of:
//
//	rho = (since + left/rate) / alone
type finish struct {
	since float64 // s, in the system so far
	left  float64 // steps
	alone float64 // s, from arrival to end with an equal part
}

// fractions makes the greatest rho as small as it can be, by Dinkelbach's
// method: with the greatest rho there is so far, every job needs some
// throughput; all are given as many times that as can be, and the greatest rho
// that comes of it is the next. It falls until nothing is gained. Then programmes go
// on from there and give away what is left.
func (f *finishTimes) fractions(ctx context.Context, s *Shares) error {
	jobs := f.update(s)
	for i := range s.Jobs {
		copy(s.Jobs[i].X, s.Isolated(&s.Jobs[i]))
	}
	rho := s.greatestRho(jobs)
	if rho == 0 {
		return nil // no job has steps left
	}
	for range 50 {
		if s.plans { // a group may be there several times, for which there are no prices
			break
		}
		if err := s.byPrices(ctx, func(i int) float64 { return s.need(i, jobs[i], rho) }); err != nil {
			return err
		}
		next := s.greatestRho(jobs)
		if !(next < rho*(1-1e-6)) {
			break
		}
		rho = next
	}
	return s.finishBy(ctx, jobs, rho)
}

// need returns one over the throughput with which job i would be at rho, 0 if
// nothing is left of it.
func (s *Shares) need(i int, j finish, rho float64) float64 {
	if j.left <= 0 {
		return 0
	}
	return 1 / max(j.left/(rho*j.alone-j.since), leastNeed*s.Jobs[i].fastest())
}

// finishBy returns the least possible rho, at most the given one, by Newton's method. Each
// program gives, for a rho, the factor by which the need of all jobs can be met, and by
// its duals the slope of that factor; at the least rho the factor is 1.
func (s *Shares) finishBy(ctx context.Context, jobs []finish, rho float64) error {
	low, high := leastRho(jobs), rho
	for range 50 {
		times, slope, err := s.timesNeeded(ctx, jobs, rho)
		if err != nil {
			return err
		}
		got := s.greatestRho(jobs)
		if high = min(high, got); times < 1 {
			low = max(low, rho)
		}
		if math.Abs(got-rho) <= 1e-5*rho || high-low <= 1e-5*high {
			return nil
		}
		switch rho -= (times - 1) / slope; {
		case !(rho < high):
			rho = high
		case rho <= low:
			rho = (low + high) / 2
		}
	}
	return nil
}

// leastRho returns the ratio at which a job would be if it were done now.
func leastRho(jobs []finish) (rho float64) {
	for _, j := range jobs {
		if j.left > 0 {
			rho = max(rho, j.since/j.alone)
		}
	}
	return rho
}

// timesNeeded fills in the fractions with which every job has the same multiple, as
// great as can be, of the throughput that it needs for rho, and returns that and by
// how much it grows with rho.
func (s *Shares) timesNeeded(ctx context.Context, jobs []finish, rho float64) (times, slope float64, err error) {
	p := s.program()
	multiple := p.Var("times what is needed", -lp.Inf, lp.Inf, 1)
	rows := make([]lp.Row, len(jobs))
	for i, j := range jobs {
		if f := s.need(i, j, rho); f > 0 {
			rows[i] = p.AtLeast("", 0, append(p.throughput(i, f), lp.Term{Var: multiple, Coef: -1})...)
		}
	}
	p.prefer()
	sol, err := p.solve(ctx)
	if err != nil {
		return 0, 0, err
	}
	for i, j := range jobs {
		if f := s.need(i, j, rho); f > 0 && f < 1/(leastNeed*s.Jobs[i].fastest()) {
			slope -= sol.Dual(rows[i]) * s.Jobs[i].Rate() * j.alone / j.left
		}
	}
	return sol.Value(multiple), slope, nil
}

// update brings the isolated times up to now and returns what the ratios are made
// of; left is 0 of a job that runs nowhere.
func (f *finishTimes) update(s *Shares) []finish {
	before := f.isolated
	f.isolated = make(map[spec.JobID]isolatedTime, len(s.Jobs))
	out := make([]finish, len(s.Jobs))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if len(j.Ways) == 0 {
			f.isolated[j.State.Job.ID] = before[j.State.Job.ID]
			continue
		}
		rate := 0.0
		for k, x := range s.Isolated(j) {
			rate += x * j.Ways[k].Rate
		}
		t := before[j.State.Job.ID]
		if steps := j.State.Done - t.done; steps > 0 && t.rate > 0 {
			t.sec += steps / t.rate
		}
		t.done, t.rate = j.State.Done, rate
		f.isolated[j.State.Job.ID] = t
		out[i] = finish{since: (s.Now - j.State.Job.Submit).Seconds(), left: j.State.Remaining, alone: t.sec + j.State.Remaining/rate}
	}
	return out
}

// greatestRho returns the greatest ratio under the fractions there are.
func (s *Shares) greatestRho(jobs []finish) float64 {
	rho := 0.0
	for i, j := range jobs {
		if j.left > 0 {
			rho = math.Max(rho, (j.since+j.left/s.Jobs[i].Rate())/j.alone)
		}
	}
	return rho
}
