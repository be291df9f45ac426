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
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/sia"
)

// elasticPacer is pacer for jobs that choose their batch, which changes how fast
// they get on while they train: what is best for them changes with it, and starts
// cost little beside it, so that nothing is planned ahead. Each job gets one of
// its configurations, a number of devices of one type, or none, such that
//
//	Σ_j weight_j * rank_j^0.8 * v_jc^0.8
//
// is largest and no type has more devices granted than it has:
//
//	rank_j  1 for the job with most time left, were it alone in its best
//	        configuration, one more for each with less
//	v_jc    goodput of job j in configuration c at present, as a part of that in its
//	        best one, times what of the time until it ends there, or of elasticWindow
//	        where that is longer, it trains after the restart that c costs
//
// If goodput grew with the devices to the power of p, and jobs ended without
// others coming, ranks and goodputs to the powers of p and 1 would be best for the
// mean completion time (Berg, Vesilo and Harchol-Balter, "heSRPT: Parallel
// scheduling to minimize mean slowdown", Performance Evaluation 144, 2020). The
// powers and the window were chosen on workloads 5 to 8 of philly and 4 to 7 of
// saturn in Sia's artifact; between 0.6 and 1 the powers hardly matter.
//
// A job without known goodput counts as the one with least time left, and all its
// configurations are worth the same. Where the remaining steps are not known, as many are
// assumed as were done. Guarantees are not kept, which is a warning.
type elasticPacer struct {
	space  *sia.Space
	window time.Duration
	guess  bool // the steps that remain are not known
}

// elasticWindow is over how long a restart has to pay.
const (
	elasticWindow   = 900 * time.Second
	elasticInterval = time.Minute // between two decisions though nothing happened
	elasticRank     = 0.8
	elasticSpeed    = 0.8
)

// newElasticPacer refuses options that say how jobs are planned ahead.
func newElasticPacer(d policy.Deps, oracle scheduler.Elastic, guess bool) (scheduler.Policy, error) {
	for _, name := range slices.Sorted(maps.Keys(d.Options)) {
		if name != "steps" {
			return nil, fmt.Errorf("policy: pacer:%s=%s says how jobs are planned ahead, and those that choose their batch are not; leave it out", name, d.Options[name])
		}
	}
	return &elasticPacer{guess: guess, space: sia.NewSpace(d, oracle), window: elasticWindow}, nil
}

func (p *elasticPacer) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	f := elasticFloor{belief: p.space.Belief, s: s, free: s.Idle()}
	for _, j := range s.Jobs() {
		r, err := p.candidate(ctx, s, j)
		if err != nil {
			return scheduler.Decision{}, err
		}
		f.rows = append(f.rows, r)
	}
	p.weigh(s, f.rows)
	room := make([]int, len(s.Cluster.Groups))
	for g := range room {
		room[g] = f.free.FreeIn(g)
	}
	picks, proven, err := sia.Choose(ctx, f.rows, 0, room)
	if err != nil {
		return scheduler.Decision{}, fmt.Errorf("policy: pacer: %w", err)
	}
	f.place(picks)
	d := f.decision(picks)
	if slices.ContainsFunc(f.rows, func(r *sia.Row) bool { return r.Job.Guaranteed }) {
		d.Warnings = append(d.Warnings, "no guarantee is kept of jobs that choose their batch")
	}
	if !proven {
		d.Warnings = append(d.Warnings, "what was chosen at times is not proven to be the best")
	}
	if len(f.rows) > 0 {
		d.Wake = s.Now + elasticInterval
	}
	return d, nil
}

// candidate returns the configurations of j.
func (p *elasticPacer) candidate(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (r *sia.Row, err error) {
	r = &sia.Row{JobState: j}
	if r.Cells, err = p.space.Cells(ctx, s.Cluster, j); err != nil || len(r.Cells) > 0 {
		return r, err
	}
	options, warning, err := p.space.Belief.Guess(ctx, s, j)
	r.Warning = warning
	for _, o := range options {
		r.Cells = append(r.Cells, sia.Cell{Group: o.Group, Devices: o.Devices, Goodput: o.Rate, Options: []candidate.Config{o}, Blind: true})
	}
	return r, err
}

// weigh sets the costs of all rows: what their configurations are worth, below 0.
func (p *elasticPacer) weigh(s *scheduler.Snapshot, rows []*sia.Row) {
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
		for c := range r.Cells {
			speed := 1.0
			if best > 0 {
				speed = r.Cells[c].Goodput / best
			}
			if r.Grant != nil && c != now {
				speed *= p.trains(r, c)
			}
			r.Costs[c] = -weight * math.Pow(speed, elasticSpeed)
		}
	}
}

// remaining returns the steps that a job has to go as far as is known; best is what
// it makes a second at the most.
func (p *elasticPacer) remaining(r *sia.Row, best float64) float64 {
	if p.guess {
		return max(r.Done, best*leastAhead.Seconds())
	}
	return r.Remaining
}

// trains returns which part of the time that counts a job trains that is restarted
// in a configuration.
func (p *elasticPacer) trains(r *sia.Row, cell int) float64 {
	start, counts := r.StartCost.Seconds(), p.window.Seconds()
	if v := r.Cells[cell].Goodput; v > 0 {
		counts = min(counts, start+p.remaining(r, r.Best())/v)
	}
	if start >= counts {
		return 0
	}
	return 1 - start/counts
}
