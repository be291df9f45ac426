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
	"github.com/pacer-ml/pacer/scheduler/internal/remaining"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Info is the registry entry of policy pacer.
var Info = policy.Info{
	Name:    "pacer",
	Doc:     "rolling horizon: schedules execution plans, sizes, devices and order of all jobs jointly (docs/design/joint-scheduling.md); preempts",
	Options: options,
	New:     newPacer,
}

var options = []policy.Option{
	{Name: "span", Default: "0", Max: 1, Doc: "0 for the mean completion time, 1 for the makespan: interpolates price, makespan, value and window towards 24, 60, 3 and 10800 unless given"},
	{Name: "fairness", Default: "0", Max: 0.9, Doc: "0 minimises the mean completion time; higher values the sum over jobs of (completion time / time alone as submitted) to the power 1/(1-fairness), close to the worst ratio"},
	{Name: "price", Default: "arrivals", Example: "12", Max: 1e6, Words: []string{"arrivals", "load"}, Doc: "price of the whole cluster, in waiting jobs (not the price of policy rubick); higher keeps jobs small. load: the mean number of jobs in the system. arrivals: of these, the share that came within the mean time until a job ends; times the share of devices that arrivals find in use, unless jobs wait. 12 with steps=unknown"},
	{Name: "makespan", Default: "0", Max: 1e6, Doc: "cost of a second of makespan, in jobs; 1 with steps=unknown, and at least 1 while later arrivals have no price, unless given"},
	{Name: "value", Default: "0", Max: 1e6, Doc: "value of work done within the window, in prices; higher starts long jobs earlier; 0.5 with steps=unknown"},
	{Name: "window", Default: "3600", Unit: "s", Max: 1e6, Doc: "seconds within which work has the value of option value"},
	{Name: "late", Default: "200", Max: 1e6, Doc: "cost of a second by which a guaranteed job ends later than under fifo-backfill, in jobs: as if so many jobs waited"},
	{Name: "caution", Default: "1", Max: 1e6, Doc: "fraction of the 90 % interval of speeds over which the cases for guaranteed jobs are spread"},
	{Name: "steps", Default: "known", Example: "unknown", Doc: "known; or unknown: assume as many remaining steps as were done, at least a minute's worth; without a performance model, the service that like jobs received. Guarantees are not kept then"},
	{Name: "rounds", Default: "60", Max: 1e6, Doc: "iterations of device prices that bound the gap of a schedule and, with many jobs, improve it; 0 = none"},
	{Name: "tries", Default: "600", Max: 1e6, Doc: "random moves without improvement after which the search stops"},
}

// pacer schedules all jobs forward in time at every event and applies the part that is due
// now. docs/design/joint-scheduling.md states the problem it solves. The deadline of a
// guaranteed job is its end in a reference run, see deadlines.
//
// The terms include the cost of a restart, so there is no separate threshold for restarts. The default of late was
// chosen on generated workloads (training seeds of pacer bench scheduling), what span=1 has on Rubick's base trace made
// 10 % denser and 15 % sparser.
type pacer struct {
	finder    *candidate.Finder
	deadlines *deadlines

	price, makespan, value, window float64
	lastMakespan                   float64 // makespan while later arrivals have no price
	span                           float64 // option span, 0 if a price is given
	byLoad, byArrivals             bool    // use the measured load as price, or the part of it that comes later
	late, caution, fairness        float64
	tries, rounds                  int
	guess                          bool // remaining steps are unknown
	seed                           uint64

	load          float64       // mean number of jobs in the system, see count
	found         float64       // mean share of devices that arrivals find in use, see count
	waits         bool          // a job without devices was there before this time
	counted, next int           // jobs in load, and the Order of the next new job
	first         time.Duration // time of the first decision, valid if started
	started       bool

	useful candidate.PerCurve[[]candidate.Config] // the undominated candidates

	taskMemory []lookahead.Candidate // of the tasks of a decision, used again by the next one
	memory     lookahead.Memory

	history remaining.History

	last, before warmStart // the last schedule, and the last of an earlier time
}

// Defaults with steps=unknown, where schedules do not know when jobs end, and with span 1, in the units of the options.
const (
	guessPrice    = 12
	guessMakespan = 1 // also while later arrivals have no price
	guessValue    = 0.5

	priceAt1    = 24
	makespanAt1 = 60
	valueAt1    = 3
	windowAt1   = 10800
)

// minLoad is the load of a single job.
const minLoad = 1

// loadWindow is the number of last arrivals over which the load is averaged.
const loadWindow = 50

// count updates the load: the mean number of jobs in the system at arrivals, including the
// new job, and the mean share of devices in use then. For Poisson arrivals these are the means at any time.
func (p *pacer) count(s *scheduler.Snapshot) {
	if !p.started {
		p.first, p.started = s.Now, true
	}
	jobs := s.Jobs()
	next := p.next
	var found float64
	for _, j := range jobs {
		if j.Order < p.next {
			continue
		}
		if next == p.next {
			found = inUse(s)
		}
		next = max(next, j.Order+1)
		p.counted = min(p.counted+1, loadWindow)
		p.load += (float64(len(jobs)) - p.load) / float64(p.counted)
		p.found += (found - p.found) / float64(p.counted)
	}
	p.next, p.load = next, max(p.load, minLoad)
}

// later returns the part of the load that arrives after a decision, while the jobs that it schedules are there: the load
// times the share of present jobs that came within the mean time until a job of the last schedule ends. Jobs of the first
// decision did not come later than any. While no job waits, it is taken times the share of devices that arrivals find in use:
// the others would be idle without the jobs that hold them. If all times are multiplied by a number, it stays the same.
func (p *pacer) later(s *scheduler.Snapshot) float64 {
	jobs := s.Jobs()
	if len(jobs) == 0 {
		return 0
	}
	came := 0
	for _, j := range jobs {
		if j.Job.Submit > p.first && (s.Now-j.Job.Submit).Seconds() < p.before.meanEnd {
			came++
		}
	}
	price := p.load * float64(came) / float64(len(jobs))
	if !p.waits {
		price *= p.found
	}
	return price
}

// inUse returns the share of the devices of nodes that are up that jobs hold.
func inUse(s *scheduler.Snapshot) float64 {
	free, idle, left, all := s.Free().Free, s.Idle().Free, 0, 0
	for node, devices := range idle {
		left, all = left+free[node], all+devices
	}
	return 1 - float64(left)/float64(max(all, 1))
}

// warmStart is the last schedule, from which the next search starts.
type warmStart struct {
	at      time.Duration
	meanEnd float64 // mean time until a job ends, seconds
	entries []entry // in order
	prices  lookahead.Prices
	jobs    []spec.JobID // by task of the last problem
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
	b.Structured = true
	p := &pacer{finder: b, seed: d.Seed}
	v := d.Values(options)
	p.fairness = v.Float("fairness")
	switch steps := v.Text("steps"); steps {
	case "known", "unknown":
		p.guess = steps == "unknown"
	default:
		return nil, fmt.Errorf("steps=%s is neither known nor unknown", steps)
	}
	switch price := v.Text("price"); {
	case p.guess && !v.Given("price"):
		p.price = guessPrice
	case price == "load":
		p.byLoad = true
	case price == "arrivals":
		p.byArrivals = true
	default:
		p.price = v.Float("price")
	}
	p.makespan, p.value, p.window = v.Float("makespan"), v.Float("value"), v.Float("window")
	p.late, p.caution = v.Float("late"), v.Float("caution")
	span := v.Float("span")
	if !v.Given("price") {
		p.span = span
	}
	p.lastMakespan = p.makespan
	if !v.Given("makespan") {
		if p.guess {
			p.makespan = guessMakespan
		}
		p.makespan += span * span * span * (makespanAt1 - p.makespan)
		p.lastMakespan = max(p.makespan, guessMakespan)
	}
	if !v.Given("value") {
		if p.guess {
			p.value = guessValue
		}
		p.value += math.Pow(span, 1.5) * (valueAt1 - p.value)
	}
	if !v.Given("window") {
		p.window *= math.Pow(windowAt1/p.window, span)
	}
	p.tries, p.rounds = v.Int("tries"), v.Int("rounds")
	if err := v.Err(); err != nil {
		return nil, err
	}
	p.deadlines = newDeadlines(b, p.caution)
	if oracle, ok := d.Oracle.(scheduler.Elastic); ok {
		return newElasticPacer(d, oracle, p.guess)
	}
	return p, nil
}

// maxSteps bounds the search steps of one decision: about a second.
const maxSteps = 300_000_000

// Decide states the scheduling problem, searches for a schedule from the last one, and
// applies the starts and preemptions that are due now.
func (p *pacer) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if p.last.at < s.Now { // once per instant, so that Decide is idempotent
		p.before = p.last
		p.waits = slices.ContainsFunc(s.Jobs(), func(j *scheduler.JobState) bool { return j.Grant == nil && j.Order < p.next })
	}
	p.count(s)
	o := &decision{pacer: p, s: s, free: s.Free()}
	if err := o.prepare(ctx); err != nil {
		return scheduler.Decision{}, err
	}
	o.index()
	schedule, err := lookahead.Search(ctx, &o.problem, lookahead.Options{Tries: p.tries, Rounds: p.rounds, Steps: maxSteps, Seed: p.seed, Rough: p.guess, Hint: o.hint(), Prices: o.prices(), Memory: &p.memory})
	if err != nil {
		return scheduler.Decision{}, fmt.Errorf("policy: pacer: %w", err)
	}
	o.remember(&schedule)
	o.apply(&schedule)
	if gap := o.problem.Gap(&schedule); !math.IsInf(gap, 0) {
		o.d.Gap = &gap
	}
	o.explain(&schedule)
	o.d.Wake = o.recheck(&schedule)
	return o.d, nil
}

// explain adds the scheduled start of waiting jobs.
func (o *decision) explain(schedule *lookahead.Schedule) {
	for j := range o.d.Unexplained(o.s) {
		i := slices.IndexFunc(o.jobs, func(p *plannedJob) bool { return p.Job.ID == j.Job.ID })
		if i < 0 || j.Grant != nil {
			continue
		}
		if c := &schedule.Assignments[i]; c.Candidate >= 0 && c.Start > 0 {
			o.why(o.jobs[i], "scheduled to start in %.0f s on %d devices and to end in %.0f s", c.Start, o.jobs[i].options[c.Candidate].Devices, c.End)
		}
	}
}

// decision is the state of one decision.
type decision struct {
	*pacer
	s       *scheduler.Snapshot
	free    *scheduler.Inventory
	up      []int         // nodes, by group
	many    bool          // there are more than manyJobs
	jobs    []*plannedJob // by task of the problem
	taskOf  map[spec.JobID]int
	problem lookahead.Problem
	d       scheduler.Decision

	narrowed map[*candidate.Config][]candidate.Config // results of narrow, by the first option
}
