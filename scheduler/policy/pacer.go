package policy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lookahead"
)

func init() {
	register(Info{
		Name: "pacer",
		Doc:  "plans, sizes, places and order of all jobs together, by looking ahead (docs/joint-scheduling.md); preempts",
		Options: []Option{
			{"span", "0", "0 for the mean completion time, 1 for the makespan: price, makespan, value and window go to 24, 30, 60 and 10800 unless given"},
			{"fairness", "0", "0 for the mean completion time, towards 1 for the worst ratio of that to the time alone as submitted: the sum of its powers of 1/(1-fairness); 0.9 at the most"},
			{"price", "12", "jobs that are taken to wait for the whole cluster at any time; higher keeps jobs small. load: as many as those that came found inside"},
			{"makespan", "1", "what a second costs by which all that is there is done later, in jobs"},
			{"value", "6", "what work done within the window is worth, as price; higher starts long jobs earlier"},
			{"window", "3600", "seconds within which work has that value"},
			{"late", "1000", "what each of the first hundred seconds costs by which a guaranteed job ends later than under fifo-backfill, in jobs; a tenth of that beyond"},
			{"caution", "1", "how much of the 90 % intervals of speeds guaranteed jobs reckon with"},
			{"steps", "known", "known, or unknown: as many remain as were done, a minute's at the least; no guarantee is kept then"},
			{"rounds", "60", "times prices of devices are moved to prove how good a plan is, and of many jobs to find better ones; 0 = neither"},
			{"tries", "600", "random changes in vain after which a plan is taken to be good enough"},
		},
		New: newPacer,
	})
}

// pacer plans all jobs forward in time at every event and does what the plan does
// first. docs/joint-scheduling.md states the problem it solves.
//
// What guaranteed jobs are promised is the time at which they would end under
// fifo-backfill as submitted (shadow).
//
// The terms, and that there is no gate before a restart but its cost within the
// plan, follow measurements on Rubick's base trace that were made before this was
// written; the defaults of price, value and window were then chosen on that
// trace 10 % denser and 15 % sparser.
type pacer struct {
	belief   *belief
	promises *promises

	price, makespan, value, window float64
	byLoad                         bool // the price is the load
	late, caution, fairness        float64
	tries, rounds                  int
	guess                          bool // the steps that remain are not known
	seed                           uint64

	load       float64 // see count
	came, next int     // jobs in it, and the Order of who comes next

	last, before itinerary // the plan made last, and the one made at a time before
}

// fewest is the least load: that of a job that is alone.
const fewest = 1

// loadOver is over how many of the jobs that came last the load is the mean.
const loadOver = 50

// count brings the load up to date: how many jobs those who came found inside, themselves
// included. If they come at random, that is how many there are at any time.
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

// itinerary is what is left of a plan: where the next search starts.
type itinerary struct {
	at     time.Duration
	legs   []leg // in order
	prices lookahead.Prices
	jobs   []spec.JobID // by the task that it was
}

// leg is what a plan said of a job that it had start.
type leg struct {
	job    spec.JobID
	group  int
	shape  string
	strict bool
}

func newPacer(d Deps) (scheduler.Policy, error) {
	b := newBelief(d)
	p := &pacer{belief: b, seed: d.Seed}
	span, err := d.number("span", 0, 0, 1)
	if err != nil {
		return nil, err
	}
	if p.fairness, err = d.number("fairness", 0, 0, 0.9); err != nil {
		return nil, err
	}
	var tries, rounds float64
	if p.byLoad = d.Options["price"] == "load"; p.byLoad {
		d.Options = maps.Clone(d.Options)
		delete(d.Options, "price")
	}
	for _, o := range []struct {
		name      string
		def, most float64 // with span 0 and 1
		value     *float64
	}{
		{"price", 12, 24, &p.price},
		{"makespan", 1, 30, &p.makespan},
		{"value", 6, 60, &p.value},
		{"window", 3600, 10800, &p.window},
		{"late", 1000, 1000, &p.late},
		{"caution", 1, 1, &p.caution},
		{"tries", 600, 600, &tries},
		{"rounds", 60, 60, &rounds},
	} {
		if *o.value, err = d.number(o.name, o.def*math.Pow(o.most/o.def, span), 0, 1e6); err != nil {
			return nil, err
		}
	}
	switch steps := cmp.Or(d.Options["steps"], "known"); steps {
	case "known", "unknown":
		p.guess = steps == "unknown"
	default:
		return nil, fmt.Errorf("steps=%s is neither known nor unknown", steps)
	}
	p.promises = newPromises(b, p.caution)
	if p.tries = int(tries); float64(p.tries) != tries {
		return nil, fmt.Errorf("tries=%g is not a whole number", tries)
	}
	if p.rounds = int(rounds); float64(p.rounds) != rounds {
		return nil, fmt.Errorf("rounds=%g is not a whole number", rounds)
	}
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
	o := &outlook{pacer: p, s: s, free: s.Free()}
	if err := o.prepare(ctx); err != nil {
		return scheduler.Decision{}, err
	}
	o.turnTo()
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

// explain says when the plan has those start who wait.
func (o *outlook) explain(plan *lookahead.Plan) {
	for j := range o.d.Unexplained(o.s) {
		i := slices.IndexFunc(o.jobs, func(p *prospect) bool { return p.Job.ID == j.Job.ID })
		if i < 0 || j.Grant != nil {
			continue
		}
		if c := &plan.Choices[i]; c.Way >= 0 && c.Start > 0 {
			o.why(o.jobs[i], "starts in %.0f s by the plan, on %d devices, and ends in %.0f", c.Start, o.jobs[i].options[c.Way].devices, c.End)
		}
	}
}

// outlook is one decision in the making.
type outlook struct {
	*pacer
	s       *scheduler.Snapshot
	free    *scheduler.Inventory
	up      []int       // nodes, by group
	jobs    []*prospect // by task of the problem
	taskOf  map[spec.JobID]int
	problem lookahead.Problem
	d       scheduler.Decision
}

// prospect is a job in one decision.
type prospect struct {
	*scheduler.JobState
	options []option // as the task's ways: those that the nodes that are up have room for
	now     *option  // how it runs at present, nil if it waits or that is unknown
	blind   bool     // nothing is known of it: options are guesses at its own size
}

// prepare states the problem.
func (o *outlook) prepare(ctx context.Context) error {
	all := float64(o.s.Cluster.Devices())
	price := o.price
	if o.byLoad {
		price = o.load
	}
	o.problem = lookahead.Problem{Price: price / all, End: o.makespan, Value: o.value / all, Window: o.window, Power: 1 / (1 - o.fairness)}
	o.up = make([]int, len(o.s.Cluster.Groups))
	for node, devices := range o.s.Idle().Free {
		group := o.free.Group[node]
		o.problem.Nodes = append(o.problem.Nodes, lookahead.Node{Group: group, Devices: devices, Host: o.s.Cluster.Groups[group].Host()})
		if devices > 0 {
			o.up[group]++
		}
	}
	for _, j := range o.s.Jobs() {
		p, err := o.prospect(ctx, j)
		if err != nil {
			return err
		}
		o.jobs = append(o.jobs, p)
	}
	if err := o.promise(ctx); err != nil {
		return err
	}
	for _, p := range o.jobs {
		o.problem.Tasks = append(o.problem.Tasks, o.task(p))
	}
	if o.fairness > 0 {
		return o.share(ctx)
	}
	return nil
}

// share states how long jobs are there and would be alone, as submitted, and sets their
// weights such that a second of a job is worth as much in the mean as without.
func (o *outlook) share(ctx context.Context) error {
	var urgency, weight float64
	for i, p := range o.jobs {
		t := &o.problem.Tasks[i]
		alone, err := o.belief.alone(ctx, o.s.Cluster, p.JobState)
		if err != nil {
			return err
		}
		t.Age, t.Alone = (o.s.Now - p.Job.Submit).Seconds(), alone
		urgency += o.problem.Urgency(t)
		weight += t.Weight
	}
	for i := range o.problem.Tasks {
		if urgency > 0 {
			o.problem.Tasks[i].Weight *= weight / urgency
		}
	}
	return nil
}

// prospect looks j up in the belief.
func (o *outlook) prospect(ctx context.Context, j *scheduler.JobState) (*prospect, error) {
	cv, err := o.belief.curve(ctx, o.s.Cluster, j.Job)
	if err != nil {
		return nil, err
	}
	p := &prospect{JobState: j}
	if p.blind = len(cv.options) == 0; p.blind {
		var warning string
		p.options, warning, err = o.belief.guess(ctx, o.s, j)
		p.options = slices.DeleteFunc(p.options, o.tooWide)
		if o.guess {
			p.JobState = asLongAgain(j, p.options)
		}
		o.warn(warning)
		return p, err
	}
	if p.options, err = o.ways(ctx, j, cv); err != nil {
		return nil, err
	}
	if o.guess {
		p.JobState = asFarAgain(j, p.options)
	}
	if j.Grant != nil {
		p.now, err = o.belief.held(ctx, o.s.Cluster, j, o.free.Group[j.Grant.Slots[0].Node], cv)
	}
	return p, err
}

// ways returns the ways j may run in: those of its curve and, of a guaranteed one,
// as it was submitted, which is no slower than it is there whatever is believed.
func (o *outlook) ways(ctx context.Context, j *scheduler.JobState, cv *curve) ([]option, error) {
	out := slices.Clone(cv.options)
	if j.Job.Guaranteed {
		w, err := o.belief.asSubmitted(ctx, o.s.Cluster, j.Job)
		if err != nil {
			return nil, err
		}
		for i := range w.options {
			if own := &w.options[i]; cv.at(own) == nil {
				out = append(out, *own)
			}
		}
	}
	return slices.DeleteFunc(out, o.tooWide), nil
}

// leastAhead is how long a job is taken to run yet at the least of which the steps
// are not known, on its best use of devices.
const leastAhead = time.Minute

// asFarAgain returns j as if as many steps remained as it has done.
func asFarAgain(j *scheduler.JobState, options []option) *scheduler.JobState {
	frugal, least := 0.0, math.Inf(1)
	for i := range options {
		if per := float64(options[i].devices) / options[i].rate; per < least {
			frugal, least = options[i].rate, per
		}
	}
	out := *j
	out.Remaining = max(j.Done, frugal*leastAhead.Seconds())
	return &out
}

// asLongAgain returns j, of which nothing is known at all, as if it ran as long
// again as it has, and makes it so by the rates of options.
func asLongAgain(j *scheduler.JobState, options []option) *scheduler.JobState {
	out, job := *j, *j.Job
	job.Duration = 0
	out.Job, out.Remaining = &job, max(j.Done, 1)
	for i := range options {
		ran := j.Attained / float64(options[i].devices)
		options[i].rate = out.Remaining / max(ran, leastAhead.Seconds())
	}
	return &out
}

// tooWide reports whether a way takes more nodes than are up. Nobody knows for how
// long, so it is not planned with.
func (o *outlook) tooWide(way option) bool { return way.shape.Nodes() > o.up[way.group] }

// promise finds when guaranteed jobs are due.
func (o *outlook) promise(ctx context.Context) error {
	promised := slices.ContainsFunc(o.jobs, func(p *prospect) bool { return p.Job.Guaranteed })
	if o.guess {
		if promised {
			o.warn("no guarantee is kept of jobs whose steps are not known")
		}
		return nil
	}
	if err := o.promises.follow(ctx, o.s); err != nil || !promised {
		return err
	}
	return o.promises.look(ctx, o.s)
}

// task puts a job the way the search takes it.
func (o *outlook) task(p *prospect) lookahead.Task {
	t := lookahead.Task{Weight: cmp.Or(p.Job.Weight, 1), Fixed: p.blind}
	for i := range p.options {
		way := &p.options[i]
		idle, run := p.StartCost.Seconds(), runTime(p.JobState, way.rate)
		t.Ways = append(t.Ways, lookahead.Way{Group: way.group, Counts: way.shape.PerNode(), Devices: way.devices, Host: p.Job.Host.Max(way.host), Idle: idle, Seconds: idle + run})
		if work := run * float64(way.devices); i == 0 || work < t.Work {
			t.Work = work
		}
	}
	if p.Job.Guaranteed && !o.guess {
		o.guarantee(&t, p)
	}
	if p.Grant == nil {
		return t
	}
	for _, s := range p.Grant.Slots {
		t.Held = append(t.Held, lookahead.Slot{Node: s.Node, Devices: s.Devices, Host: s.Host})
	}
	rate := guessRate(o.s.Now, p.JobState)
	if p.now != nil {
		rate = p.now.rate
	} else if o.guess && len(p.options) > 0 {
		rate = p.options[0].rate
	}
	t.Ready = max((p.Ready - o.s.Now).Seconds(), 0)
	t.Left = t.Ready + runTime(p.JobState, rate)
	return t
}

// guarantee states by when p must start to be done in time, in every way and every
// case: to be done by then, and no later than it would have to start as submitted.
func (o *outlook) guarantee(t *lookahead.Task, p *prospect) {
	dues := o.promises.dues(p.JobState)
	if len(dues) == 0 {
		return
	}
	t.Late = o.late * t.Weight / float64(len(dues))
	from := func(at time.Duration) float64 { return (at - o.s.Now).Seconds() } // exact, whatever the time is
	for i := range t.Ways {
		w := &t.Ways[i]
		for k := range dues {
			d := &dues[k]
			w.By = append(w.By, min(from(d.end)-w.Idle-d.takes(p.JobState, &p.options[i]), from(d.start)))
		}
		slices.Sort(w.By)
	}
	if p.Grant == nil || p.now == nil {
		return
	}
	ready := max(from(p.Ready), 0)
	for k := range dues {
		t.Tardy += lookahead.Lateness(ready + dues[k].takes(p.JobState, p.now) - from(dues[k].end))
	}
}

// turnTo makes the plan made last the one before. If that was now already, it is not,
// so that asking twice gives the same answer.
func (o *outlook) turnTo() {
	if o.last.at < o.s.Now {
		o.before = o.last
	}
	o.taskOf = make(map[spec.JobID]int, len(o.jobs))
	for i, p := range o.jobs {
		o.taskOf[p.Job.ID] = i
	}
}

// prices puts those of the plan before the way the search takes them.
func (o *outlook) prices() lookahead.Prices {
	out := o.before.prices.Later((o.s.Now - o.before.at).Seconds())
	out.Ends = make([]float64, len(o.jobs))
	for i, price := range o.before.prices.Ends {
		if task, ok := o.taskOf[o.before.jobs[i]]; ok {
			out.Ends[task] = price
		}
	}
	return out
}

// hint puts the plan before the way the search takes it.
func (o *outlook) hint() (h lookahead.Hint) {
	for _, l := range o.before.legs {
		i, ok := o.taskOf[l.job]
		if !ok {
			continue
		}
		way := slices.IndexFunc(o.jobs[i].options, func(w option) bool { return w.group == l.group && w.shape.Devices == l.shape })
		h.Order = append(h.Order, i)
		h.Ways = append(h.Ways, lookahead.Intent{Way: way, Strict: l.strict})
	}
	return h
}

func (o *outlook) remember(plan *lookahead.Plan) {
	o.last = itinerary{at: o.s.Now, prices: plan.Prices}
	for _, p := range o.jobs {
		o.last.jobs = append(o.last.jobs, p.Job.ID)
	}
	for _, i := range plan.Order {
		way := &o.jobs[i].options[plan.Choices[i].Way]
		o.last.legs = append(o.last.legs, leg{o.jobs[i].Job.ID, way.group, way.shape.Devices, plan.Strict[i]})
	}
}

// carryOut grants what the plan begins with. Where the placer finds no room for
// what the plan has room for, the job waits, and who was to make way for it stays.
func (o *outlook) carryOut(plan *lookahead.Plan) {
	var stopped []int // tasks
	for i, p := range o.jobs {
		if plan.Choices[i].Keep {
			o.d.Grants = append(o.d.Grants, p.Grant)
		} else if p.Grant != nil {
			o.free.Give(p.Grant.Slots)
			stopped = append(stopped, i)
		}
	}
	started := map[int]bool{}
	for _, i := range plan.Order {
		if plan.Choices[i].Start == 0 {
			started[i] = o.start(i, &plan.Choices[i])
		}
	}
	for _, i := range stopped {
		switch p := o.jobs[i]; {
		case started[i]:
		case o.free.Take(p.Grant.Slots):
			o.d.Grants = append(o.d.Grants, p.Grant)
		default:
			o.why(p, "makes way: ends in %.0f s instead of %.0f", plan.Choices[i].End, o.problem.Tasks[i].Left)
		}
	}
}

// shortest is the least time to the next decision where nothing happens.
const shortest = 10 * time.Second

// recheck returns when to ask again should nothing happen: once somebody has not
// ended who should have, 0 = never, where ends are known.
func (o *outlook) recheck(plan *lookahead.Plan) time.Duration {
	if !o.guess {
		return 0
	}
	next := math.Inf(1)
	for i := range plan.Choices {
		if c := &plan.Choices[i]; c.Keep || c.Start == 0 {
			next = min(next, c.End)
		}
	}
	if math.IsInf(next, 1) {
		return 0
	}
	return o.s.Now + max(time.Duration(next*float64(time.Second)), shortest)
}

// start starts a job, or starts it anew, and reports whether there was room.
func (o *outlook) start(task int, c *lookahead.Choice) bool {
	p := o.jobs[task]
	g := o.belief.placeWay(o.free, p.Job, &p.options[c.Way], p.blind)
	if g == nil && p.blind {
		g = o.belief.placeBlind(o.free, o.s.Cluster, p.Job)
	}
	if g == nil || !o.free.Take(g.Slots) {
		return false
	}
	o.d.Grants = append(o.d.Grants, g)
	switch {
	case p.blind && p.Job.Duration == 0:
		o.why(p, "nothing is predicted of it: as submitted, on %s", g.Shape.Devices)
	case p.Grant == nil:
		o.why(p, "ends in %.0f s on %s", c.End, g.Shape.Devices)
	default:
		o.why(p, "ends in %.0f s on %s instead of %.0f on %s", c.End, g.Shape.Devices, o.problem.Tasks[task].Left, p.Grant.Shape.Devices)
	}
	return true
}

func (o *outlook) why(p *prospect, format string, args ...any) {
	o.d.Because(o.s, p.Job.ID, format, args...)
}

func (o *outlook) warn(text string) {
	if text != "" && !slices.Contains(o.d.Warnings, text) {
		o.d.Warnings = append(o.d.Warnings, text)
	}
}
