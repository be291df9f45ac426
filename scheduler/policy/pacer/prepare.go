package pacer

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/internal/lookahead"
)

// plannedJob is a job in one decision.
type plannedJob struct {
	*scheduler.JobState
	options     []candidate.Config // the candidates of its task, shared with its kind; those that need more nodes than are up are left out
	now         *candidate.Config  // its present configuration, nil if it waits or that is unknown
	unpredicted bool               // no prediction: options are guesses at its submitted size
	expected    bool               // their rates are such that it receives the expected service
}

// prepare states the problem.
func (o *decision) prepare(ctx context.Context) error {
	all := float64(o.s.Cluster.Devices())
	price := o.price
	switch {
	case o.byLoad:
		price = o.load
	case o.byArrivals:
		price = o.later(o.s)
	}
	price += o.span * (priceAt1 - price)
	end := o.makespan
	if price == 0 {
		end = o.lastMakespan
	}
	o.problem = lookahead.Problem{Price: price / all, End: end, Value: o.value * price / all, Window: o.window, Power: 1 / (1 - o.fairness)}
	o.up = make([]int, len(o.s.Cluster.Groups))
	for node, devices := range o.s.Idle().Free {
		group := o.free.Group[node]
		o.problem.Nodes = append(o.problem.Nodes, lookahead.Node{Group: group, Devices: devices, Host: o.s.Cluster.Groups[group].Host()})
		if devices > 0 {
			o.up[group]++
		}
	}
	o.history.Observe(o.s)
	o.many = len(o.s.Jobs()) > manyJobs
	if err := o.plan(ctx); err != nil {
		return err
	}
	if o.finder.Observe(o.held) { // again, with the speeds that jobs had
		if err := o.plan(ctx); err != nil {
			return err
		}
	}
	if err := o.findDeadlines(ctx); err != nil {
		return err
	}
	candidates := 0
	for _, p := range o.jobs {
		candidates += len(p.options)
	}
	o.taskMemory = slices.Grow(o.taskMemory[:0], candidates)
	o.problem.Tasks = make([]lookahead.Task, 0, len(o.jobs))
	for _, p := range o.jobs {
		o.problem.Tasks = append(o.problem.Tasks, o.task(p))
	}
	if o.fairness > 0 {
		return o.setFairness(ctx)
	}
	return nil
}

// plan sets jobs.
func (o *decision) plan(ctx context.Context) error {
	o.jobs = o.jobs[:0]
	for _, j := range o.s.Jobs() {
		p, err := o.plannedJob(ctx, j)
		if err != nil {
			return err
		}
		o.jobs = append(o.jobs, p)
	}
	return nil
}

// held yields the jobs that run in a known configuration.
func (o *decision) held(yield func(*scheduler.JobState, *candidate.Config) bool) {
	for _, p := range o.jobs {
		if p.now != nil && !yield(p.JobState, p.now) {
			return
		}
	}
}

// setFairness sets the age of each task and its time alone as submitted. It scales the
// weights so that the mean cost of a second of a job is the same as without fairness.
func (o *decision) setFairness(ctx context.Context) error {
	var urgency, weight float64
	for i, p := range o.jobs {
		t := &o.problem.Tasks[i]
		alone, err := o.finder.Alone(ctx, o.s.Cluster, p.JobState)
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

// plannedJob returns j with its predicted configurations.
func (o *decision) plannedJob(ctx context.Context, j *scheduler.JobState) (*plannedJob, error) {
	cv, err := o.finder.Curve(ctx, o.s.Cluster, j.Job)
	if err != nil {
		return nil, err
	}
	p := &plannedJob{JobState: j}
	if p.unpredicted = len(cv.Configs) == 0; p.unpredicted {
		var warning string
		p.options, warning, err = o.finder.Guess(ctx, o.s, j)
		p.options = slices.DeleteFunc(p.options, o.tooWide)
		o.warn(warning)
		o.expect(p)
		return p, err
	}
	if p.options, err = o.candidates(ctx, j, cv); err != nil {
		return nil, err
	}
	if o.guess {
		p.JobState = assumeSteps(j, p.options)
	}
	if j.Grant != nil {
		p.now, err = o.finder.Held(ctx, o.s.Cluster, j, o.free.Group[j.Grant.Slots[0].Node], cv)
	}
	return p, err
}

// candidates returns the configurations of j: those of its curve and, if it is guaranteed,
// the submitted ones, so that it can always run as in the reference run.
func (o *decision) candidates(ctx context.Context, j *scheduler.JobState, cv *candidate.Curve) ([]candidate.Config, error) {
	if !j.Job.Guaranteed {
		options := cv.Configs
		if o.many {
			options = o.useful.Of(cv, func() []candidate.Config { return candidate.Undominated(cv.Configs) })
		}
		return o.narrow(options), nil
	}
	w, err := o.finder.AsSubmitted(ctx, o.s.Cluster, j.Job)
	if err != nil {
		return nil, err
	}
	out := cv.Configs[:len(cv.Configs):len(cv.Configs)]
	for i := range w.Configs {
		if own := &w.Configs[i]; cv.At(own) == nil {
			out = append(out, *own)
		}
	}
	return o.narrow(out), nil
}

// manyJobs is the number of jobs above which candidates are left out that another one replaces in any schedule. So the
// best schedule is as good, but the search draws other random changes. First decisions about 400, 1000 and 5000 jobs
// need 23, 38 and 49 % less memory with a gap of 3.20 % in place of 3.29, 3.10 in place of 3.12, and the same; that about
// 5000 takes 30 % less time. With fewer jobs there is little to save.
const manyJobs = 300

// narrow returns options without those that are too wide, or options themselves if none is. Jobs of a kind share them.
func (o *decision) narrow(options []candidate.Config) []candidate.Config {
	if len(options) == 0 {
		return nil
	}
	out, known := o.narrowed[&options[0]]
	if !known {
		if out = options; slices.ContainsFunc(options, o.tooWide) {
			out = slices.DeleteFunc(slices.Clone(options), o.tooWide)
		}
		if o.narrowed == nil {
			o.narrowed = map[*candidate.Config][]candidate.Config{}
		}
		o.narrowed[&options[0]] = out
	}
	return out
}

// minRemaining is the least assumed remaining run time if remaining steps are unknown, in
// the configuration with the highest rate per device.
const minRemaining = time.Minute

// assumeSteps returns a copy of j with as many remaining steps as it has done.
func assumeSteps(j *scheduler.JobState, options []candidate.Config) *scheduler.JobState {
	frugal, least := 0.0, math.Inf(1)
	for i := range options {
		if per := float64(options[i].Devices) / options[i].Rate; per < least {
			frugal, least = options[i].Rate, per
		}
	}
	out := *j
	out.Remaining = max(j.Done, frugal*minRemaining.Seconds())
	return &out
}

// expect sets the remaining time of a job without a prediction: that of its recorded duration, or else what History
// expects. It sets the rates of its options, which it does not share.
func (o *decision) expect(p *plannedJob) {
	if p.Job.Duration > 0 && !o.guess {
		o.warn("jobs without a prediction are scheduled by their recorded run times, which the gap takes as exact")
		return
	}
	o.warn("jobs without a prediction are scheduled by the service that others received, and the gap takes what is expected as exact")
	state, job := *p.JobState, *p.Job
	job.Duration = 0
	state.Job, state.Remaining = &job, max(p.Remaining, 1)
	p.JobState, p.expected = &state, true
	service := o.history.Cost(p.Job, p.Attained)
	for i := range p.options {
		p.options[i].Rate = state.Remaining * float64(p.options[i].Devices) / service
	}
}

// tooWide reports whether a configuration needs more nodes than are up. It is not scheduled
// then, since the time of repair is unknown.
func (o *decision) tooWide(c candidate.Config) bool { return len(c.PerNode()) > o.up[c.Group] }

// findDeadlines computes the deadlines of guaranteed jobs.
func (o *decision) findDeadlines(ctx context.Context) error {
	guaranteed := slices.ContainsFunc(o.jobs, func(p *plannedJob) bool { return p.Job.Guaranteed })
	if o.guess {
		if guaranteed {
			o.warn("guarantees are not kept with steps=unknown")
		}
		return nil
	}
	if err := o.deadlines.update(ctx, o.s); err != nil || !guaranteed {
		return err
	}
	return o.deadlines.forecast(ctx, o.s)
}

// task returns the task of a job for the search.
func (o *decision) task(p *plannedJob) lookahead.Task {
	t, from := lookahead.Task{Weight: cmp.Or(p.Job.Weight, 1)}, len(o.taskMemory)
	for i := range p.options {
		c := &p.options[i]
		idle, run := p.StartCost.Seconds(), candidate.RunTime(p.JobState, c.Rate)
		o.taskMemory = append(o.taskMemory, lookahead.Candidate{Group: c.Group, Counts: c.PerNode(), Devices: c.Devices, Host: p.Job.Host.Max(c.Host), Idle: idle, Seconds: idle + run})
		if work := run * float64(c.Devices); !p.unpredicted && (i == 0 || work < t.Work) {
			t.Work = work // without a prediction only the order is chosen, and early work has no value of its own
		}
	}
	t.Candidates = o.taskMemory[from:]
	if p.Job.Guaranteed && !o.guess {
		o.guarantee(&t, p)
	}
	if p.Grant == nil {
		return t
	}
	for _, s := range p.Grant.Slots {
		t.Held = append(t.Held, lookahead.Slot{Node: s.Node, Devices: s.Devices, Host: s.Host})
	}
	rate := candidate.GuessRate(o.s.Now, p.JobState)
	if p.now != nil {
		rate = p.now.Rate
	} else if (o.guess || p.expected) && len(p.options) > 0 {
		rate = p.options[0].Rate
	}
	t.Ready = max((p.Ready - o.s.Now).Seconds(), 0)
	t.Left = t.Ready + candidate.RunTime(p.JobState, rate)
	return t
}

// guarantee sets the latest start of p in every candidate and case: early enough to end by the deadline and, unless later
// arrivals have no price, no later than if at most as many devices as it asked for were available.
func (o *decision) guarantee(t *lookahead.Task, p *plannedJob) {
	deadlinesOf := o.deadlines.deadlinesOf(p.JobState)
	if len(deadlinesOf) == 0 {
		return
	}
	t.Late = o.late * t.Weight / float64(len(deadlinesOf))
	from := func(at time.Duration) float64 { return (at - o.s.Now).Seconds() } // subtract before converting, to stay exact
	for k := range deadlinesOf {
		d, asked := &deadlinesOf[k], math.Inf(-1)
		for i := range t.Candidates {
			w := &t.Candidates[i]
			w.By = append(w.By, from(d.end)-w.Idle-d.runTime(p.JobState, &p.options[i]))
			if w.Devices <= p.Job.Devices {
				asked = max(asked, w.By[k])
			}
		}
		if o.problem.Price == 0 || math.IsInf(asked, -1) { // no job is expected, or too few nodes are up
			continue
		}
		for i := range t.Candidates {
			by := t.Candidates[i].By
			by[k] = min(by[k], asked)
		}
	}
	for i := range t.Candidates {
		slices.Sort(t.Candidates[i].By)
	}
	if p.Grant == nil || p.now == nil {
		return
	}
	ready := max(from(p.Ready), 0)
	for k := range deadlinesOf {
		t.Tardy += max(ready+deadlinesOf[k].runTime(p.JobState, p.now)-from(deadlinesOf[k].end), 0)
	}
}
