package pacer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/sia"
)

// elasticPacer is pacer for jobs that choose their batch. Their statistical efficiency
// changes while they train, and so does the best configuration, so they are not scheduled
// ahead. Each job gets one of its configurations, a number of devices of one type, or none.
// The choice maximises
//
//	Σ_j weight_j * rank_j^0.8 * v_jc^0.8
//
// subject to the devices of each type:
//
//	rank_j  rank by remaining time alone in the best configuration; 1 = longest
//	v_jc    goodput of job j in configuration c, divided by that in its best one, times
//	        the fraction of its time in c that it trains if c needs a restart. The time
//	        counted is that until it ends, at most its mean time between restarts so far
//
// A job that holds devices loses what a later restart costs if it gets none.
//
// If goodput were proportional to the number of devices to the power p, and no more jobs
// arrived, powers p of the rank and 1 of the goodput would minimise the mean completion
// time (Berg, Vesilo and Harchol-Balter, "heSRPT: Parallel scheduling to minimize mean
// slowdown", Performance Evaluation 144, 2020). The powers were chosen on workloads 5 to 8
// of philly and 4 to 7 of saturn in Sia's artifact. Those between 0.6 and 1 give nearly
// equal results.
//
// A job without predicted goodput has the highest rank, and equal goodput in all its
// configurations. With steps=unknown as many remaining steps are assumed as were done.
// Guarantees are not kept; a warning reports that.
type elasticPacer struct {
	space *sia.Space
	guess bool // remaining steps are unknown
}

const (
	elasticInterval = time.Minute // between two decisions without an event
	elasticRank     = 0.8
	elasticSpeed    = 0.8
)

// newElasticPacer rejects the options of scheduling ahead.
func newElasticPacer(d policy.Deps, oracle scheduler.Elastic, guess bool) (scheduler.Policy, error) {
	for _, name := range slices.Sorted(maps.Keys(d.Options)) {
		if name != "steps" {
			return nil, fmt.Errorf("policy: pacer: option %s=%s does not apply to jobs that choose their batch, which are not scheduled ahead", name, d.Options[name])
		}
	}
	return &elasticPacer{guess: guess, space: sia.NewSpace(d, oracle)}, nil
}

// Decide chooses a configuration per job by an integer program, then places the jobs.
func (p *elasticPacer) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	f := elasticPlacement{finder: p.space.Finder, s: s, free: s.Idle()}
	for _, j := range s.Jobs() {
		r, err := p.space.Row(ctx, s, j)
		if err != nil {
			return scheduler.Decision{}, err
		}
		f.rows = append(f.rows, r)
	}
	p.setCosts(s, f.rows)
	room := make([]int, len(s.Cluster.Groups))
	for g := range room {
		room[g] = f.free.FreeIn(g)
	}
	choice, err := sia.Choose(ctx, f.rows, 0, room, nil)
	if err != nil {
		return scheduler.Decision{}, fmt.Errorf("policy: pacer: %w", err)
	}
	f.place(choice.Picks)
	d := f.decision(choice.Picks)
	if slices.ContainsFunc(f.rows, func(r *sia.Row) bool { return r.Job.Guaranteed }) {
		d.Warnings = append(d.Warnings, "guarantees of jobs that choose their batch are not kept")
	}
	if !choice.Proven {
		d.Warnings = append(d.Warnings, "some decisions are not proven optimal")
	}
	if len(f.rows) > 0 {
		d.Wake = s.Now + elasticInterval
	}
	return d, nil
}

// setCosts sets the costs of all configurations: the negated terms of the objective.
func (p *elasticPacer) setCosts(s *scheduler.Snapshot, rows []*sia.Row) {
	left := make(map[*sia.Row]float64, len(rows)) // seconds
	for _, r := range rows {
		if best := r.Best(); best > 0 {
			left[r] = p.remaining(r, best) / best
		}
	}
	order := slices.Clone(rows)
	slices.SortStableFunc(order, func(a, b *sia.Row) int { return cmp.Compare(left[b], left[a]) })
	for i, r := range order {
		weight, now, best := cmp.Or(r.Job.Weight, 1)*math.Pow(float64(i+1), elasticRank), r.CellOf(s), r.Best()
		r.Costs = make([]float64, len(r.Cells))
		value := func(c int, share float64) float64 { // share of the time
			if best > 0 {
				share *= r.Cells[c].Goodput / best
			}
			return weight * math.Pow(share, elasticSpeed)
		}
		stopped := 0.0
		if now >= 0 && best > 0 {
			stopped = value(now, 1-p.trainingShare(s.Now, r, now))
		}
		for c := range r.Cells {
			share := 1.0
			if r.Grant != nil && c != now {
				share = p.trainingShare(s.Now, r, c)
			}
			r.Costs[c] = -value(c, share) - stopped
		}
	}
}

// remaining returns the remaining steps of a job; with guess as many as were done, at
// least a minute's worth. best is its highest goodput, in steps/s.
func (p *elasticPacer) remaining(r *sia.Row, best float64) float64 {
	if p.guess {
		return max(r.Done, best*minRemaining.Seconds())
	}
	return r.Remaining
}

// trainingShare returns the fraction of the time that a job trains after a restart in a
// configuration, until it ends, but over its mean time between restarts at most.
func (p *elasticPacer) trainingShare(now time.Duration, r *sia.Row, cell int) float64 {
	start, counts := r.StartCost.Seconds(), (now-r.Job.Submit).Seconds()/float64(r.Restarts+1)
	if v := r.Cells[cell].Goodput; v > 0 {
		counts = min(counts, start+p.remaining(r, r.Best())/v)
	}
	if start >= counts {
		return 0
	}
	return 1 - start/counts
}
