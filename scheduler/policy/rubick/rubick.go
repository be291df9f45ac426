package rubick

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var (
	Info  = rubickVariant("rubick", "plans and sizes by sensitivity curves of completion time, with remaining steps known exactly (docs/design/rubick.md; after Zhang et al., Rubick, MLSys 2025)", candidate.Fixed{})
	InfoE = rubickVariant("rubick-e", "rubick that chooses plans alone: jobs have as many devices as they ask for", candidate.Fixed{Size: true})
	InfoR = rubickVariant("rubick-r", "rubick that chooses resources alone: jobs keep their plan, but for the number of replicas", candidate.Fixed{Plan: true})
	InfoN = rubickVariant("rubick-n", "rubick that chooses neither plans nor resources, only which jobs run and when", candidate.Fixed{Plan: true, Size: true})
)

var options = []policy.Option{
	{Name: "price", Default: "0.1", Max: 1e6, Doc: "least price of a device-second, in seconds: a job takes the n devices with the least completion time x (1 + price x n); higher keeps jobs small"},
	{Name: "gate", Default: "1", Max: 1e6, Doc: "start costs that growing a running job must gain, in completion time and device-seconds at their price"},
	{Name: "budget", Default: "0.1", Max: 1e6, Doc: "share of a job's run, from its first start to its estimated end, that the start costs of its restarts may take"},
	{Name: "starve", Default: "28800", Unit: "s", Max: math.MaxFloat64, Doc: "seconds since submission after which a waiting job gets a reservation"},
	{Name: "shrink", Default: "true", Doc: "shrink and stop running jobs for waiting ones, if they lose less than those gain"},
	{Name: "grow", Default: "true", Doc: "give devices left over to running jobs"},
}

// rubickVariant describes rubick where something of a job stays as submitted.
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
//  1. Every job has a curve: for each device count and layout, which is what the
//     network's bandwidth comes to, the best plan the oracle allows there, and how
//     fast that is believed to be; plans that offload also over the CPUs they may
//     have (withCPUs), and they hold their devices' share of the host memory. From
//     the work left it follows how long the job would take,
//     T = start cost + steps left / rate. Devices below are those a job holds, or
//     what its CPUs and memory come to where that is a larger share of the cluster.
//  2. A guaranteed job has a minimum: only ways at least as fast as its own plan
//     at its own size count. A best-effort job's minimum is nothing at all.
//  3. Waiting jobs are taken by falling slope at zero, 1/(T·devices): the
//     completions per second that a device gives when lent to that job.
//  4. Each starts at the size with the least T·(1 + price·devices), unless
//     waiting for running jobs to end would serve it better than what fits now.
//  5. For a job that does not fit others shrink: running jobs give up devices or CPUs,
//     or stop, in ascending order of seconds lost per device, while together they lose
//     less than the job gains by not waiting.
//  6. Devices left over go to running jobs, those first that gain the most
//     seconds per added device.
//  7. The gate: a change must repay its start cost (it is part of T, so a move
//     that does not pay is never a gain), growing must gain at least gate times
//     the start cost on top, and restarts may take no more than a share, budget,
//     of a job's run.
//  8. A job that has waited too long (starve) gets a reservation: the nodes it
//     could have first are given only to jobs that will be gone by then.
//
// The ablations fix what is not to be chosen (type fixed): rubick-e the number of
// devices, rubick-r the plan but for the number of replicas, rubick-n both. A job
// whose own plan runs at no other size runs as submitted there, one without a plan
// may have any.
//
// Where the publication is silent, or its artifact does something that cannot be
// meant (its shrink step is never reached, slopes are sorted the wrong way
// round, model names and restart counts decide), this is what was chosen:
//
//   - Slopes are of completion time, not of throughput. Where most jobs are
//     shorter than their start cost, throughput sends them to sizes at which the
//     cluster does nothing but start them.
//   - price is what a device-second costs the others: with W jobs waiting for N
//     devices each is delayed by 1/N, so W/N; never below the option, which
//     stands for the jobs still to come.
//   - The speed a guarantee stands for is that of the job's own plan and size, by
//     the same belief as everything else. The artifact takes two thirds of the
//     measured one.
//   - A guaranteed job may take devices from best-effort jobs whatever their
//     slope, within their restart budget. In the queue it does not come
//     before them, as it does in the artifact: on its mt trace that raised the mean
//     completion time from 1.4-1.5 to 2.4-2.6 ks, and that of the guaranteed jobs
//     from 1.9-2.0 to 2.7-2.9, since the long ones among them then hold up the
//     short ones. So best-effort jobs can delay a guaranteed one: 19 to 33 of the
//     194 end more than a minute later than under fifo-backfill.
//   - A job keeps the group of nodes it runs on; it starts on the group that
//     suits it best by rule 4 among those with room.
//   - A job nothing is known about runs as submitted and is never changed; its
//     run time is taken to be its recorded duration, or else as long again as it
//     has been there.
//
// Measured (BenchmarkRubickOptions of package bench): on the 406 jobs of the
// artifact's base trace, as it is, 10 % denser and 15 % sparser, with beliefs
// wrong by log-normal factors of sigma 0, 0.1 and 0.2, the mean completion time
// is 1.10 ks and the makespan 68 ks. They change by less than 3 % and 1 % for a
// price of 0.02..0.3 and a gate of 0.5..2. A budget of 0.05 costs 16 % in mean
// completion time, no shrinking 39 %; not growing saves 2 %. starve trades the
// mean against the longest completion time: never 1.09 and 45.2 ks, 8 h 1.10 and
// 44.9, 6 h 1.32 and 43.3, 4 h 1.45 and 41.7, 2 h 2.20 and 39.3. The defaults were
// chosen on this trace.
type rubick struct {
	belief *candidate.Finder
	fixed  candidate.Fixed // for the ablations

	price, gate, budget float64
	starve              float64 // s
	shrinks, grows      bool
}

func newRubick(d policy.Deps, f candidate.Fixed) (scheduler.Policy, error) {
	p := &rubick{belief: candidate.NewFinder(d), fixed: f}
	p.belief.Cpus = !f.Size
	v := d.Values(options)
	p.price, p.gate, p.budget, p.starve = v.Float("price"), v.Float("gate"), v.Float("budget"), v.Float("starve")
	p.shrinks, p.grows = v.Bool("shrink"), v.Bool("grow")
	return p, v.Err()
}

// task is a job in one decision.
type task struct {
	*scheduler.JobState
	options []candidate.Config // the ways it may run, its minimum met
	blind   bool               // nothing is known of it: options are guesses at its own size
	now     *candidate.Config  // how it runs at present, nil if it waits or that is unknown
	spare   bool               // it runs and its restart budget allows another

	best  *candidate.Config // where it would start, by rule 4
	slope float64           // at zero: completions/s per device

	grant *scheduler.Grant // the target, nil = none
	left  float64          // seconds until it ends if left alone; with a new target, under that
}

// in returns how many seconds t takes if it is started or changed to o now.
func (t *task) in(o *candidate.Config) float64 { return t.StartCost.Seconds() + t.Remaining/o.Rate }

// waited returns the seconds since t was submitted.
func (r *round) waited(t *task) float64 { return (r.s.Now - t.Job.Submit).Seconds() }

// round is one decision in the making.
type round struct {
	*rubick
	s       *scheduler.Snapshot
	d       scheduler.Decision
	free    *scheduler.Inventory
	tasks   []*task // in snapshot order
	queue   []*task // those waiting, steepest first
	running []*task // the others, in snapshot order
	price   float64 // of a device-second now

	scratch []move // of moves

	ends []*task // those with a target, by when they end; nil = to be sorted

	// The reservation: these nodes are kept for a starved job that can have
	// them after so many seconds.
	reserved []bool
	until    float64
}

func (p *rubick) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	r := &round{rubick: p, s: s, free: s.Free(), price: p.price}
	if err := r.prepare(ctx); err != nil {
		return scheduler.Decision{}, err
	}
	r.reserve()
	for _, t := range r.queue {
		if t.grant == nil && !r.start(t) && p.shrinks {
			r.feed(t)
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
	return r.d, nil
}

// prepare makes the tasks and sorts those that wait.
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

// task looks j up in the belief.
func (r *round) task(ctx context.Context, j *scheduler.JobState) (*task, error) {
	cv, err := r.belief.CurveOf(ctx, r.s.Cluster, j.Job, r.fixed)
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
		if t.now, err = r.belief.Held(ctx, r.s.Cluster, j, r.free.Group[j.Grant.Slots[0].Node], cv); err != nil {
			return nil, err
		}
		rate := candidate.GuessRate(r.s.Now, j)
		if t.now != nil {
			rate = t.now.Rate
		}
		t.left = max((j.Ready-r.s.Now).Seconds(), 0) + candidate.RunTime(j, rate)
		t.spare = r.spare(t)
	}
	return t, nil
}

// guarantee leaves t the options that are as fast as what it asked for; that itself,
// if others are not.
func (r *round) guarantee(ctx context.Context, t *task) error {
	w, err := r.belief.AsSubmitted(ctx, r.s.Cluster, t.Job)
	if err != nil {
		return err
	}
	if w.Blind {
		r.warn(fmt.Sprintf("%s on %s: no prediction, such a job is guaranteed nothing", t.Job.Model.Name, spec.Count(t.Job.Devices, "device")))
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

// guess gives a job nothing is known about its own plan and size.
func (r *round) guess(ctx context.Context, t *task) error {
	options, warning, err := r.belief.Guess(ctx, r.s, t.JobState)
	if warning != "" {
		r.warn(warning)
	}
	t.options, t.blind = options, true
	return err
}

// size picks where t would start if it could have any devices, and its slope.
func (r *round) size(t *task) {
	least := math.Inf(1)
	for i := range t.options {
		if c := r.cost(t, &t.options[i]); c < least {
			least, t.best = c, &t.options[i]
		}
	}
	if t.best != nil {
		t.slope = 1 / (t.in(t.best) * t.best.Load)
	}
}

// cost returns what running t with o costs all jobs, in seconds: its own time, and its
// device-seconds at their price.
func (r *round) cost(t *task, o *candidate.Config) float64 { return t.in(o) * r.rent(o) }

// rent returns what a second with o costs all jobs, in seconds.
func (r *round) rent(o *candidate.Config) float64 { return 1 + r.price*o.Load }
