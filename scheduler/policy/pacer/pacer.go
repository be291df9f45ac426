package pacer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/internal/lookahead"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var Info = policy.Info{
	Name:    "pacer",
	Doc:     "plans, sizes, devices and order of all jobs together, by a rolling horizon (docs/design/joint-scheduling.md); preempts",
	Options: options,
	New:     newPacer,
}

var options = []policy.Option{
	{Name: "span", Default: "0", Max: 1, Doc: "0 for the mean completion time, 1 for the makespan: price, makespan, value and window go to 24, 30, 60 and 10800 unless given"},
	{Name: "fairness", Default: "0", Max: 0.9, Doc: "0 for the mean completion time, towards 1 for the worst ratio of that to the time alone as submitted: the sum of its powers of 1/(1-fairness); 0.9 at the most"},
	{Name: "price", Default: "12", Max: 1e6, Doc: "jobs assumed to wait for the whole cluster at any time (not the price of policy rubick); higher keeps jobs small. load: the mean number of jobs in the system"},
	{Name: "makespan", Default: "1", Max: 1e6, Doc: "cost of a second of makespan, in jobs"},
	{Name: "value", Default: "6", Max: 1e6, Doc: "value of work done within the window, in the unit of price; higher starts long jobs earlier"},
	{Name: "window", Default: "3600", Unit: "s", Max: 1e6, Doc: "seconds within which work has the value of option value"},
	{Name: "late", Default: "1000", Max: 1e6, Doc: "cost of each of the first hundred seconds by which a guaranteed job ends later than under fifo-backfill, in jobs; a tenth of that beyond"},
	{Name: "caution", Default: "1", Max: 1e6, Doc: "part of the 90 % interval of speeds by which guaranteed jobs are planned slower"},
	{Name: "steps", Default: "known", Doc: "known, or unknown: assumes as many remaining steps as were done, at least a minute; guarantees are not kept then"},
	{Name: "rounds", Default: "60", Max: 1e6, Doc: "iterations of device prices to bound the gap of a plan and, with many jobs, to improve it; 0 = none"},
	{Name: "tries", Default: "600", Max: 1e6, Doc: "random moves without improvement after which the search stops"},
}

// pacer plans all jobs forward in time at every event and does what the plan does
// first. docs/design/joint-scheduling.md states the problem it solves.
//
// What guaranteed jobs are promised is the time at which they would end under
// fifo-backfill as submitted (type reference).
//
// The terms, and that there is no gate before a restart but its cost within the
// plan, follow measurements on Rubick's base trace that were made before this was
// written; the defaults of price, value and window were then chosen on that
// trace 10 % denser and 15 % sparser.
type pacer struct {
	belief    *candidate.Finder
	deadlines *deadlines

	price, makespan, value, window float64
	byLoad                         bool // the price is the load
	late, caution, fairness        float64
	tries, rounds                  int
	guess                          bool // the steps that remain are not known
	seed                           uint64

	load       float64 // see count
	came, next int     // jobs in it, and the Order of the next new job

	last, before warmStart // the plan made last, and the one made at a time before
}

// fewest is the least load: that of a job that is alone.
const fewest = 1

// loadOver is over how many of the jobs that came last the load is the mean.
const loadOver = 50

// count updates the load: the number of jobs in the system that new jobs find, themselves
// included. If jobs come at random, this is the mean number of jobs at any time.
func (p *pacer) count(s *scheduler.Snapshot) {
	jobs := s.Jobs()
	next := p.next
	for _, j := range jobs {
		if j.Order < p.next {
			continue
		}
		next = max(next, j.Order+1)
		p.came = min(p.came+1, loadOver)
		p.load += (float64(len(jobs)) - p.load) / float64(p.came)
	}
	p.next, p.load = next, max(p.load, fewest)
}

// warmStart is the last schedule, from which the next search starts.
type warmStart struct {
	at      time.Duration
	entries []entry // in order
	prices  lookahead.Prices
	jobs    []spec.JobID // by the task that it was
}

// entry is a planned start of a job.
type entry struct {
	job    spec.JobID
	group  int
	shape  string
	strict bool
}

func newPacer(d policy.Deps) (scheduler.Policy, error) {
	b := candidate.NewFinder(d)
	p := &pacer{belief: b, seed: d.Seed}
	v := d.Values(options)
	span := v.Float("span")
	p.fairness = v.Float("fairness")
	if p.byLoad = v.Text("price") == "load"; !p.byLoad {
		p.price = v.Float("price")
	}
	p.makespan, p.value, p.window = v.Float("makespan"), v.Float("value"), v.Float("window")
	p.late, p.caution = v.Float("late"), v.Float("caution")
	for _, o := range []struct {
		name    string
		at1     float64 // default with span 1
		setting *float64
	}{{"price", 24, &p.price}, {"makespan", 30, &p.makespan}, {"value", 60, &p.value}, {"window", 10800, &p.window}} {
		if !v.Given(o.name) {
			*o.setting *= math.Pow(o.at1 / *o.setting, span)
		}
	}
	p.tries, p.rounds = v.Int("tries"), v.Int("rounds")
	if err := v.Err(); err != nil {
		return nil, err
	}
	switch steps := v.Text("steps"); steps {
	case "known", "unknown":
		p.guess = steps == "unknown"
	default:
		return nil, fmt.Errorf("steps=%s is neither known nor unknown", steps)
	}
	p.deadlines = newDeadlines(b, p.caution)
	if oracle, ok := d.Oracle.(scheduler.Elastic); ok {
		return newElasticPacer(d, oracle, p.guess)
	}
	return p, nil
}

// mostWork bounds the search of one decision, in its steps: of the order of a
// second.
const mostWork = 300_000_000

func (p *pacer) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	p.count(s)
	o := &decision{pacer: p, s: s, free: s.Free()}
	if err := o.prepare(ctx); err != nil {
		return scheduler.Decision{}, err
	}
	o.advance()
	plan, err := lookahead.Search(ctx, &o.problem, lookahead.Options{Tries: p.tries, Rounds: p.rounds, Steps: mostWork, Seed: p.seed, Hint: o.hint(), Prices: o.prices()})
	if err != nil {
		return scheduler.Decision{}, fmt.Errorf("policy: pacer: %w", err)
	}
	o.remember(&plan)
	o.carryOut(&plan)
	if gap := o.problem.Gap(&plan); !math.IsInf(gap, 0) {
		o.d.Gap = &gap
	}
	o.explain(&plan)
	o.d.Wake = o.recheck(&plan)
	return o.d, nil
}

// explain gives the planned start of jobs that wait.
func (o *decision) explain(plan *lookahead.Schedule) {
	for j := range o.d.Unexplained(o.s) {
		i := slices.IndexFunc(o.jobs, func(p *plannedJob) bool { return p.Job.ID == j.Job.ID })
		if i < 0 || j.Grant != nil {
			continue
		}
		if c := &plan.Assignments[i]; c.Candidate >= 0 && c.Start > 0 {
			o.why(o.jobs[i], "starts in %.0f s by the plan, on %d devices, and ends in %.0f", c.Start, o.jobs[i].options[c.Candidate].Devices, c.End)
		}
	}
}

// decision is one decision in the making.
type decision struct {
	*pacer
	s       *scheduler.Snapshot
	free    *scheduler.Inventory
	up      []int         // nodes, by group
	jobs    []*plannedJob // by task of the problem
	taskOf  map[spec.JobID]int
	problem lookahead.Problem
	d       scheduler.Decision
}
