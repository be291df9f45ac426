package gavel

import (
	"context"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// FTF is the registry entry of policy gavel-ftf.
var FTF = policy.Info{
	Name:    "gavel-ftf",
	Doc:     "finish-time fairness: minimises the highest rho, the finish time divided by the finish time on 1/N of the cluster (Narayanan et al., Gavel, OSDI 2020, section 4.2)",
	Options: solving,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		f := &finishTimes{}
		return solved(d, Objective{}, f.fractions)
	},
}

// finishTimes keeps the isolated time of each job: the time that its completed steps
// would have taken on 1/N of the cluster.
type finishTimes struct {
	isolated map[spec.JobID]isolatedTime
}

type isolatedTime struct {
	done float64 // completed steps
	sec  float64 // isolated time of these steps, seconds
	rate float64 // isolated steps/s of further steps
}

// finish has the terms of rho of one job:
//
//	rho = (since + left/rate) / alone
type finish struct {
	since float64 // seconds since submission
	left  float64 // remaining steps
	alone float64 // seconds from submission to end on 1/N of the cluster
}

// fractions minimises the highest rho by Dinkelbach's method. The present highest rho
// implies a throughput that each job needs. A max-min problem scales these needs as far as
// possible, which gives the next highest rho, until it no longer falls. finishBy then
// refines the result with linear programs, which also distribute spare devices.
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
		if s.plans { // byPrices needs one candidate per group
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

// need returns the reciprocal of the throughput that gives job i this rho, 0 if the job
// has no steps left.
func (s *Shares) need(i int, j finish, rho float64) float64 {
	if j.left <= 0 {
		return 0
	}
	return 1 / max(j.left/(rho*j.alone-j.since), leastNeed*s.Jobs[i].fastest())
}

// finishBy minimises the highest rho by Newton's method, starting from rho. Each linear
// program returns the factor by which the needs of all jobs at a rho can be scaled, and
// its duals give the slope of that factor. The factor is 1 at the minimal rho.
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

// leastRho returns a lower bound on the highest rho: that of jobs that end now.
func leastRho(jobs []finish) (rho float64) {
	for _, j := range jobs {
		if j.left > 0 {
			rho = max(rho, j.since/j.alone)
		}
	}
	return rho
}

// timesNeeded fills in the fractions with which every job has the same, maximal multiple
// of the throughput that it needs for rho. It returns the multiple and its derivative by
// rho.
func (s *Shares) timesNeeded(ctx context.Context, jobs []finish, rho float64) (times, slope float64, err error) {
	p := s.program()
	multiple := p.Var("multiple of need", -lp.Inf, lp.Inf, 1)
	rows := make([]lp.Row, len(jobs))
	for i, j := range jobs {
		if f := s.need(i, j, rho); f > 0 {
			rows[i] = p.AtLeast("", 0, append(p.throughput(i, f), lp.Term{Var: multiple, Coef: -1})...)
		}
	}
	p.breakTies()
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

// update advances the isolated times to s.Now and returns the terms of rho of each job.
// A job that runs nowhere has left 0.
func (f *finishTimes) update(s *Shares) []finish {
	before := f.isolated
	f.isolated = make(map[spec.JobID]isolatedTime, len(s.Jobs))
	out := make([]finish, len(s.Jobs))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if len(j.Candidates) == 0 {
			f.isolated[j.State.Job.ID] = before[j.State.Job.ID]
			continue
		}
		rate := 0.0
		for k, x := range s.Isolated(j) {
			rate += x * j.Candidates[k].Rate
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

// greatestRho returns the highest rho under the present fractions.
func (s *Shares) greatestRho(jobs []finish) float64 {
	rho := 0.0
	for i, j := range jobs {
		if j.left > 0 {
			rho = math.Max(rho, (j.since+j.left/s.Jobs[i].Rate())/j.alone)
		}
	}
	return rho
}
