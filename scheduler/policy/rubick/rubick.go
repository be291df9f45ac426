package rubick

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/internal/remaining"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// The registry entries of policy rubick and its ablations.
var (
	Info  = rubickVariant("rubick", "plans and sizes by sensitivity curves of completion time, with remaining steps known exactly (docs/design/rubick.md; after Zhang et al., Rubick, MLSys 2025)", candidate.Fixed{})
	InfoE = rubickVariant("rubick-e", "rubick that chooses only plans: jobs have their submitted number of devices", candidate.Fixed{Size: true})
	InfoR = rubickVariant("rubick-r", "rubick that chooses only resources: jobs keep their plan except for the number of replicas", candidate.Fixed{Plan: true})
	InfoN = rubickVariant("rubick-n", "rubick that chooses neither plans nor resources, only the order of jobs", candidate.Fixed{Plan: true, Size: true})
)

var options = []policy.Option{
	{Name: "price", Default: "0.1", Max: 1e6, Doc: "least price of a device-second, in seconds: a job takes the n devices with the least completion time x (1 + price x n); higher keeps jobs small"},
	{Name: "gate", Default: "1", Max: 1e6, Doc: "start costs that growing a running job must gain, in completion time and device-seconds at their price"},
	{Name: "budget", Default: "0.1", Max: 1e6, Doc: "share of a job's run, from its first start to its estimated end, that the start costs of its restarts may take"},
	{Name: "starve", Default: "28800", Unit: "s", Max: math.MaxFloat64, Doc: "seconds since submission after which a waiting job gets a reservation"},
	{Name: "shrink", Default: "true", Doc: "shrink and stop running jobs for waiting ones, if they lose less than those gain"},
	{Name: "grow", Default: "true", Doc: "give idle devices to running jobs"},
}

// rubickVariant returns rubick with some properties of jobs fixed as submitted.
func rubickVariant(name, doc string, f candidate.Fixed) policy.Info {
	return policy.Info{
		Name:    name,
		Doc:     doc,
		Options: options,
		New:     func(d policy.Deps) (scheduler.Policy, error) { return newRubick(d, f) },
	}
}

// rubick chooses plans and resources jointly, guided by sensitivity curves.
//
// Source: Zhang et al., "Rubick: Exploiting Job Reconfigurability for Deep
// Learning Cluster Scheduling", MLSys 2025 (arXiv 2408.08586), and its artifact
// AlibabaPAI/reconfigurable-dl-scheduler at 80e85248.
//
// The algorithm, at every event:
//
//  1. Every job has a curve: for each device count and layout the best plan and its
//     predicted speed. The layout stands for the network bandwidth. Plans that offload
//     also have a CPU dimension (withCPUs) and use their share of the host memory. The
//     remaining time is T = start cost + remaining steps / rate. Below, devices means
//     the load: the devices of a job, or its CPUs or memory in devices if that is more.
//  2. A guaranteed job has a minimum: only configurations at least as fast as its own
//     plan at its own size count. A best-effort job has none.
//  3. Waiting jobs are served by descending slope at zero, 1/(T·devices): completions
//     per second and device.
//  4. Each starts with the configuration of least T·(1 + price·devices), unless waiting
//     for running jobs to end is better than what fits now.
//  5. For a job that does not fit others shrink: running jobs give up devices or CPUs,
//     or stop, in ascending order of seconds lost per device, while together they lose
//     less than the job gains by not waiting.
//  6. Idle devices go to running jobs, in descending order of seconds gained per added
//     device.
//  7. The gate: a change must repay its start cost, which is part of T. Growing must gain
//     at least gate times the start cost on top. Restarts may take at most the fraction
//     budget of a job's run time.
//  8. A job that has waited longer than starve gets a reservation: the nodes it could have
//     first are given only to jobs that end before that.
//
// The ablations fix properties of jobs (candidate.Fixed): rubick-e the number of devices,
// rubick-r the plan except for the number of replicas, rubick-n both. If the submitted plan
// runs at no other size the job runs as submitted. A job without a plan may have any.
//
// The paper leaves some choices open, and parts of its artifact are defects (its shrink step
// is never reached, slopes are sorted in the wrong direction, model names and restart counts
// decide). The choices here:
//
//   - Slopes are of completion time, not of throughput. If most jobs are shorter than
//     their start cost, throughput would lead to sizes at which the cluster mainly starts
//     jobs.
//   - price is the cost of a device-second to the other jobs: with W jobs waiting for N
//     devices, W/N. It is at least the option, which stands for future arrivals.
//   - The guaranteed speed is the predicted one of the job's own plan and size. The
//     artifact takes two thirds of the measured speed.
//   - A guaranteed job may take devices from best-effort jobs regardless of slope, within
//     their restart budget. Unlike in the artifact it has no priority in the queue. On
//     the artifact's mt trace that priority raised the mean completion time from 1.4-1.5
//     to 2.4-2.6 ks, and that of guaranteed jobs from 1.9-2.0 to 2.7-2.9, because long
//     guaranteed jobs delay short ones. Best-effort jobs can therefore delay a guaranteed
//     one: 19 to 33 of the 194 end more than a minute later than under fifo-backfill.
//   - A job stays in its group of nodes. It starts in the best group by rule 4 with room.
//   - A job without a prediction has its submitted plan and size, and may be stopped for
//     others. Its run time is its recorded duration, else the expected one by the service
//     that others received (scheduler/internal/remaining).
//
// Measured (BenchmarkRubickOptions of package bench) on the 406 jobs of the artifact's base
// trace, unchanged, 10 % denser and 15 % sparser, with log-normal prediction errors of sigma
// 0, 0.1 and 0.2: the mean completion time is 1.10 ks and the makespan 68 ks. They change by
// less than 3 % and 1 % for a price of 0.02..0.3 and a gate of 0.5..2. A budget of 0.05 costs
// 16 % in mean completion time, no shrinking 39 %; not growing saves 2 %. starve trades the
// mean against the longest completion time: never 1.09 and 45.2 ks, 8 h 1.10 and 44.9, 6 h
// 1.32 and 43.3, 4 h 1.45 and 41.7, 2 h 2.20 and 39.3. The defaults were chosen on this trace.
type rubick struct {
	finder *candidate.Finder
	fixed  candidate.Fixed // for the ablations

	price, gate, budget float64
	starve              float64 // s
	shrinks, grows      bool

	history remaining.History
}

func newRubick(d policy.Deps, f candidate.Fixed) (scheduler.Policy, error) {
	p := &rubick{finder: candidate.NewFinder(d), fixed: f}
	p.finder.Cpus = !f.Size
	v := d.Values(options)
	p.price, p.gate, p.budget, p.starve = v.Float("price"), v.Float("gate"), v.Float("budget"), v.Float("starve")
	p.shrinks, p.grows = v.Bool("shrink"), v.Bool("grow")
	return p, v.Err()
}

// task is a job in one decision.
type task struct {
	*scheduler.JobState
	options     []candidate.Config // configurations that meet its minimum
	unpredicted bool               // no prediction: options are guesses at its submitted size
	expected    bool               // their rates are such that it receives the service that others did
	now         *candidate.Config  // its present configuration, nil if it waits or that is unknown
	mayRestart  bool               // it runs, and its restart budget allows another restart

	best  *candidate.Config // where it would start, by rule 4
	slope float64           // at zero: completions/s per device

	grant *scheduler.Grant // the target, nil = none
	left  float64          // seconds until it ends with grant
}

// runTime returns the seconds until t ends if it is started in or changed to o now.
func (t *task) runTime(o *candidate.Config) float64 {
	return t.StartCost.Seconds() + t.Remaining/o.Rate
}

// waited returns the seconds since t was submitted.
func (r *round) waited(t *task) float64 { return (r.s.Now - t.Job.Submit).Seconds() }

// round is the state of one decision.
type round struct {
	*rubick
	s       *scheduler.Snapshot
	d       scheduler.Decision
	free    *scheduler.Inventory
	tasks   []*task // in snapshot order
	queue   []*task // waiting jobs, steepest first
	running []*task // running jobs, in snapshot order
	price   float64 // of a device-second now

	scratch []move // of moves

	ends []*task // tasks with a grant, ascending by left; nil = not sorted

	// The reservation: these nodes are reserved for a starved job that can have them in
	// until seconds.
	reserved []bool
	until    float64
}

// Decide follows rules 3 to 8 of the algorithm: reserve, start or make room for waiting jobs
// by slope, then grow running jobs.
func (p *rubick) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	p.history.Observe(s)
	r := &round{rubick: p, s: s, free: s.Free(), price: p.price}
	if err := r.prepare(ctx); err != nil {
		return scheduler.Decision{}, err
	}
	r.reserve()
	for _, t := range r.queue {
		if t.grant == nil {
			r.serve(t)
		}
	}
	for p.grows && r.grow() {
	}
	r.explain()
	for _, t := range r.tasks {
		if t.grant != nil {
			r.d.Grants = append(r.d.Grants, t.grant)
		}
	}
	r.d.Wake = r.recheck()
	return r.d, nil
}

// prepare makes the tasks and sorts the queue.
func (r *round) prepare(ctx context.Context) error {
	for _, j := range r.s.Jobs() {
		t, err := r.task(ctx, j)
		if err != nil {
			return err
		}
		r.tasks = append(r.tasks, t)
		if t.grant == nil {
			r.queue = append(r.queue, t)
		} else {
			r.running = append(r.running, t)
		}
	}
	r.price = max(r.price, float64(len(r.queue))/float64(r.s.Cluster.Devices()))
	for _, t := range r.queue {
		r.size(t)
	}
	slices.SortStableFunc(r.queue, func(a, b *task) int { return cmp.Compare(b.slope, a.slope) })
	return nil
}

// task returns the task of j with its predicted configurations.
func (r *round) task(ctx context.Context, j *scheduler.JobState) (*task, error) {
	cv, err := r.finder.CurveOf(ctx, r.s.Cluster, j.Job, r.fixed)
	if err != nil {
		return nil, err
	}
	t := &task{JobState: j, options: cv.Configs, grant: j.Grant}
	switch {
	case len(cv.Configs) == 0:
		if err := r.guess(ctx, t); err != nil {
			return nil, err
		}
	case j.Job.Guaranteed:
		if err := r.guarantee(ctx, t); err != nil {
			return nil, err
		}
	}
	if j.Grant != nil {
		group := r.free.Group[j.Grant.Slots[0].Node]
		if t.now, err = r.finder.Held(ctx, r.s.Cluster, j, group, cv); err != nil {
			return nil, err
		}
		rate := candidate.GuessRate(r.s.Now, j)
		if i := slices.IndexFunc(t.options, func(o candidate.Config) bool { return o.Group == group }); t.unpredicted && i >= 0 {
			t.now = &t.options[i]
		}
		if t.now != nil {
			rate = t.now.Rate
		}
		t.left = max((j.Ready-r.s.Now).Seconds(), 0) + candidate.RunTime(j, rate)
		t.mayRestart = r.spare(t)
	}
	return t, nil
}

// guarantee keeps the options of t that are at least as fast as the submitted one; if there
// are none, the submitted one.
func (r *round) guarantee(ctx context.Context, t *task) error {
	w, err := r.finder.AsSubmitted(ctx, r.s.Cluster, t.Job)
	if err != nil {
		return err
	}
	if w.Blind {
		r.warn(fmt.Sprintf("%s on %s: no prediction, the guarantee of such jobs is not kept", t.Job.Model.Name, spec.Count(t.Job.Devices, "device")))
		return nil
	}
	if w.Warning != "" {
		r.warn(w.Warning)
	}
	if t.options = candidate.Reaching(t.options, w.Configs[0].Rate); len(t.options) == 0 {
		t.options = w.Configs
	}
	return nil
}

// guess sets the submitted plan and size as options of a job without a prediction.
func (r *round) guess(ctx context.Context, t *task) error {
	options, warning, err := r.finder.Guess(ctx, r.s, t.JobState)
	if warning != "" {
		r.warn(warning)
	}
	t.options, t.unpredicted = options, true
	if t.expected = t.Job.Duration == 0; t.expected {
		service := r.history.Cost(t.Job, t.Attained)
		for i := range options {
			options[i].Rate = max(t.Remaining, 1) * float64(options[i].Devices) / service
		}
	}
	return err
}

// minRecheck is the least time to the next decision without an event.
const minRecheck = 10 * time.Second

// recheck returns when to decide again without an event: when a running job that was expected to end has not. 0 = never.
func (r *round) recheck() time.Duration {
	next, waits := math.Inf(1), false
	for _, t := range r.tasks {
		if waits = waits || t.grant == nil; t.grant != nil && t.expected {
			next = min(next, t.left)
		}
	}
	if !waits || math.IsInf(next, 1) {
		return 0
	}
	return r.s.Now + max(time.Duration(next*float64(time.Second)), minRecheck)
}

// size sets best, the configuration of rule 4 in an empty cluster, and the slope.
func (r *round) size(t *task) {
	least := math.Inf(1)
	for i := range t.options {
		if c := r.cost(t, &t.options[i]); c < least {
			least, t.best = c, &t.options[i]
		}
	}
	if t.best != nil {
		t.slope = 1 / (t.runTime(t.best) * t.best.Load)
	}
}

// cost returns the cost of running t with o, in seconds: its own time plus the price of its
// device-seconds.
func (r *round) cost(t *task, o *candidate.Config) float64 { return t.runTime(o) * r.rent(o) }

// rent returns the cost of a second with o, in seconds.
func (r *round) rent(o *candidate.Config) float64 { return 1 + r.price*o.Load }
