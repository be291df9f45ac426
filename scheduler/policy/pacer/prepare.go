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
	options []candidate.Config // as the task's ways: those that the nodes that are up have room for
	now     *candidate.Config  // how it runs at present, nil if it waits or that is unknown
	blind   bool               // nothing is known of it: options are guesses at its own size
}

// prepare states the problem.
func (o *decision) prepare(ctx context.Context) error {
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
		p, err := o.plannedJob(ctx, j)
		if err != nil {
			return err
		}
		o.jobs = append(o.jobs, p)
	}
	if err := o.findDeadlines(ctx); err != nil {
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
func (o *decision) share(ctx context.Context) error {
	var urgency, weight float64
	for i, p := range o.jobs {
		t := &o.problem.Tasks[i]
		alone, err := o.belief.Alone(ctx, o.s.Cluster, p.JobState)
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

// plannedJob returns j with what is predicted of it.
func (o *decision) plannedJob(ctx context.Context, j *scheduler.JobState) (*plannedJob, error) {
	cv, err := o.belief.Curve(ctx, o.s.Cluster, j.Job)
	if err != nil {
		return nil, err
	}
	p := &plannedJob{JobState: j}
	if p.blind = len(cv.Configs) == 0; p.blind {
		var warning string
		p.options, warning, err = o.belief.Guess(ctx, o.s, j)
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
		p.now, err = o.belief.Held(ctx, o.s.Cluster, j, o.free.Group[j.Grant.Slots[0].Node], cv)
	}
	return p, err
}

// ways returns the ways j may run in: those of its curve and, of a guaranteed one,
// as it was submitted, which is no slower than it is there whatever is believed.
func (o *decision) ways(ctx context.Context, j *scheduler.JobState, cv *candidate.Curve) ([]candidate.Config, error) {
	out := slices.Clone(cv.Configs)
	if j.Job.Guaranteed {
		w, err := o.belief.AsSubmitted(ctx, o.s.Cluster, j.Job)
		if err != nil {
			return nil, err
		}
		for i := range w.Configs {
			if own := &w.Configs[i]; cv.At(own) == nil {
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
func asFarAgain(j *scheduler.JobState, options []candidate.Config) *scheduler.JobState {
	frugal, least := 0.0, math.Inf(1)
	for i := range options {
		if per := float64(options[i].Devices) / options[i].Rate; per < least {
			frugal, least = options[i].Rate, per
		}
	}
	out := *j
	out.Remaining = max(j.Done, frugal*leastAhead.Seconds())
	return &out
}

// asLongAgain returns j, of which nothing is known at all, as if it ran as long
// again as it has, and makes it so by the rates of options.
func asLongAgain(j *scheduler.JobState, options []candidate.Config) *scheduler.JobState {
	out, job := *j, *j.Job
	job.Duration = 0
	out.Job, out.Remaining = &job, max(j.Done, 1)
	for i := range options {
		ran := j.Attained / float64(options[i].Devices)
		options[i].Rate = out.Remaining / max(ran, leastAhead.Seconds())
	}
	return &out
}

// tooWide reports whether a configuration takes more nodes than are up. When they will be
// up is not known, so it is not planned with.
func (o *decision) tooWide(way candidate.Config) bool { return way.Shape.Nodes() > o.up[way.Group] }

// findDeadlines computes the deadlines of guaranteed jobs.
func (o *decision) findDeadlines(ctx context.Context) error {
	promised := slices.ContainsFunc(o.jobs, func(p *plannedJob) bool { return p.Job.Guaranteed })
	if o.guess {
		if promised {
			o.warn("no guarantee is kept of jobs whose steps are not known")
		}
		return nil
	}
	if err := o.deadlines.follow(ctx, o.s); err != nil || !promised {
		return err
	}
	return o.deadlines.look(ctx, o.s)
}

// task puts a job the way the search takes it.
func (o *decision) task(p *plannedJob) lookahead.Task {
	t := lookahead.Task{Weight: cmp.Or(p.Job.Weight, 1), Fixed: p.blind}
	for i := range p.options {
		way := &p.options[i]
		idle, run := p.StartCost.Seconds(), candidate.RunTime(p.JobState, way.Rate)
		t.Candidates = append(t.Candidates, lookahead.Candidate{Group: way.Group, Counts: way.Shape.PerNode(), Devices: way.Devices, Host: p.Job.Host.Max(way.Host), Idle: idle, Seconds: idle + run})
		if work := run * float64(way.Devices); i == 0 || work < t.Work {
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
	rate := candidate.GuessRate(o.s.Now, p.JobState)
	if p.now != nil {
		rate = p.now.Rate
	} else if o.guess && len(p.options) > 0 {
		rate = p.options[0].Rate
	}
	t.Ready = max((p.Ready - o.s.Now).Seconds(), 0)
	t.Left = t.Ready + candidate.RunTime(p.JobState, rate)
	return t
}

// guarantee states by when p must start to be done in time, in every way and every
// case: to be done by then, and no later than it would have to start as submitted.
func (o *decision) guarantee(t *lookahead.Task, p *plannedJob) {
	deadlinesOf := o.deadlines.deadlinesOf(p.JobState)
	if len(deadlinesOf) == 0 {
		return
	}
	t.Late = o.late * t.Weight / float64(len(deadlinesOf))
	from := func(at time.Duration) float64 { return (at - o.s.Now).Seconds() } // exact, whatever the time is
	for i := range t.Candidates {
		w := &t.Candidates[i]
		for k := range deadlinesOf {
			d := &deadlinesOf[k]
			w.By = append(w.By, min(from(d.end)-w.Idle-d.takes(p.JobState, &p.options[i]), from(d.start)))
		}
		slices.Sort(w.By)
	}
	if p.Grant == nil || p.now == nil {
		return
	}
	ready := max(from(p.Ready), 0)
	for k := range deadlinesOf {
		t.Tardy += lookahead.Lateness(ready + deadlinesOf[k].takes(p.JobState, p.now) - from(deadlinesOf[k].end))
	}
}
