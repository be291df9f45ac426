package pollux

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Info is the registry entry of policy pollux.
var Info = policy.Info{
	Name:    "pollux",
	Doc:     "genetic search over placements for the fairest goodput of all jobs (Qiao et al., Pollux, OSDI 2021); resizes and preempts",
	Options: options,
	New:     newPollux,
}

var options = []policy.Option{
	{Name: "p", Default: "-1", Min: -100, Max: 0, Doc: "power of the mean of speedups: lower is fairer; 0 = geometric mean"},
	{Name: "population", Default: "100", Min: 1, Max: 1e4, Doc: "schedules that survive a generation; at most 16, or the jobs times the nodes if that is more"},
	{Name: "generations", Default: "100", Min: 1, Max: 1e6, Doc: "generations of a search, bounded likewise"},
	{Name: "stall", Default: "20", Max: 1e6, Doc: "generations without a better schedule after which the search ends; 0 = never"},
	{Name: "nodes", Default: "16", Min: 1, Max: 1e6, Doc: "most nodes of a job that can run on fewer"},
	{Name: "interference", Default: "true", Doc: "let at most one of the jobs on several nodes use a node"},
	{Name: "interval", Default: "60", Unit: "s", Max: 1e9, Doc: "seconds between two searches without an event"},
}

func newPollux(d policy.Deps) (scheduler.Policy, error) {
	p := &pollux{finder: candidate.NewFinder(d), seed: d.Seed}
	p.rules = policy.VariantOf[Variant](d)
	p.elastic, _ = d.Oracle.(scheduler.Elastic)
	v := d.Values(options)
	p.power, p.population, p.generations = v.Float("p"), v.Int("population"), v.Int("generations")
	p.stall, p.mostNodes, p.avoid = v.Int("stall"), v.Int("nodes"), v.Bool("interference")
	p.interval = max(v.Duration("interval"), policy.MinWake)
	return p, v.Err()
}

// pollux searches the schedule, a number of devices on every node for every job, with the
// highest fitness
//
//	F = (1/J Σ_j (s_j + 0.001)^p)^(1/p)
//
//	s_j   speedup of job j times its dominant share of the cluster per device times the
//	      number of nodes; times r_j for every row but the present one
//	r_j   restart factor max(age - restarts*S, 0) / (age + S); 1 before the first start
//	S     time of a restart, the start cost in the snapshot
//
// The search is NSGA-II. Its second objective, the utilisation, is the sum of speedups per
// device of the nodes in use; it keeps the population diverse. The best schedules start the
// next search. At most one job on several nodes uses a node, to avoid interference.
//
// Source: the artifact petuum/adaptdl at commit c793c70, simulator/pollux.py, and the text
// of the paper on fitness, restart penalty and interference. Differs: the present schedule
// is always in the population, so that no decision is worse than none. The first start of a
// job is no restart: in the artifact it is, which counts little in rounds, but at submission
// r_j would be 0. A search ends early (stall), and is smaller with few jobs and nodes. The
// artifact's speedup depends on the numbers of nodes and devices only, here on the devices of
// each node. Jobs may be limited in their configurations: repair cuts a row to the fastest
// that it covers, and mutation offers whole configurations to jobs that cannot run on one
// device. A job is in one group of nodes. Utilisation counts devices only. The fair share is
// at most the devices a job may have, from where it is extrapolated linearly. S is 30 s in the
// artifact. The cluster is not resized.
type pollux struct {
	finder  *candidate.Finder
	elastic scheduler.Elastic // nil = jobs train their own batch
	rules   Variant
	curves  candidate.PerCurve[[]layout]

	power                              float64
	population, generations, mostNodes int
	stall                              int
	avoid                              bool // interference
	interval                           time.Duration

	seed, searches uint64
	front          [][]savedRow // the best schedules of the last search
	last           policy.Memo
}

// Decide searches a schedule and applies it.
func (p *pollux) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if d, ok := p.last.Of(s); ok {
		return d, nil
	}
	p.searches++
	pr, err := p.problem(ctx, s)
	if err != nil || len(pr.jobs) == 0 {
		return scheduler.Decision{}, err
	}
	best, front := pr.search(rand.New(rand.NewPCG(p.seed, p.searches)))
	if pr.err != nil {
		return scheduler.Decision{}, pr.err
	}
	p.save(pr, front)
	d, err := pr.apply(ctx, best)
	if err != nil {
		return d, err
	}
	d.Wake = s.Now + p.interval
	return p.last.Keep(s, d), nil
}

// savedRow is a row of a schedule between two searches.
type savedRow struct {
	job   int // JobState.Order
	cells []cell
}

// save keeps the schedules of a front for the next search.
func (p *pollux) save(pr *problem, front []*schedule) {
	p.front = p.front[:0]
	for _, sc := range front {
		var rows []savedRow
		for i, r := range sc.rows {
			if len(r.cells) > 0 {
				rows = append(rows, savedRow{pr.jobs[i].Order, r.cells})
			}
		}
		p.front = append(p.front, rows)
	}
}
