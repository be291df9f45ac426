package ones

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var Info = policy.Info{
	Name:    "ones",
	Doc:     "evolves schedules; batches grow with devices, and jobs with least left to do go first (Bian et al., ONES, SC 2021); resizes and preempts",
	Options: options,
	New:     newOnes,
}

var options = []policy.Option{
	{Name: "population", Default: "16", Min: 1, Max: 4096, Doc: "schedules that survive an iteration"},
	{Name: "interval", Default: "30", Unit: "s", Max: 1e9, Doc: "seconds between two iterations when nothing happens"},
	{Name: "crossover", Default: "0.5", Max: 1, Doc: "probability that a device is swapped between two schedules; 0 = none are crossed"},
	{Name: "mutation", Default: "0.3", Max: 1, Doc: "probability that a job is taken out of a schedule; 0 = none is"},
	{Name: "pad", Default: "true", Doc: "give devices that are left first to the job with least left to do; else to a random job"},
	{Name: "reorder", Default: "true", Doc: "order jobs on devices so that few devices change; else by arrival"},
	{Name: "batch", Default: "true", Doc: "let batches grow with devices, where a job may train other batches than its own"},
	{Name: "scale", Default: "16", Min: 1, Max: 1e6, Doc: "largest batch of a job, as a multiple of its batch on one device; at least the devices it asks for. It bounds the learning rate"},
	{Name: "most", Default: "1", Min: 1, Max: 1e6, Doc: "most devices of a job, as a multiple of those it asks for; 4 in ONES's artifact"},
	{Name: "epochs", Default: "1", Max: 1e6, Doc: "epochs a job trains before its devices change"},
	{Name: "stay", Default: "120", Unit: "s", Max: 1e9, Doc: "seconds a job trains before its devices change, if its epochs are longer"},
	{Name: "known", Default: "false", Doc: "use the known remaining steps, not those learnt from losses"},
	{Name: "sample", Default: "true", Doc: "draw the remaining steps of a job from their estimated distribution; else use the mean"},
}

func newOnes(d policy.Deps) (scheduler.Policy, error) {
	p := &ones{belief: candidate.NewBelief(d), losses: d.Losses, seed: d.Seed, jobs: map[int]*onesJob{}, kinds: map[onesKind]*onesSizes{}, shapes: map[onesShape]*candidate.Config{}}
	p.batcher, _ = d.Oracle.(scheduler.Batcher)
	p.progress = newOnesProgress(rand.New(rand.NewPCG(d.Seed, onesProgressStream)))
	v := d.Values(options)
	p.population = v.Int("population")
	p.crossover, p.mutation, p.scale = v.Float("crossover"), v.Float("mutation"), v.Float("scale")
	p.most, p.epochs = v.Float("most"), v.Float("epochs")
	p.pad, p.reorder, p.known, p.sample = v.Bool("pad"), v.Bool("reorder"), v.Bool("known"), v.Bool("sample")
	if !v.Bool("batch") {
		p.batcher = nil
	}
	p.interval, p.stay = max(v.Seconds("interval"), policy.MinWake), v.Seconds("stay")
	return p, v.Err()
}

// onesProgressStream is the random stream of what is learnt of progress; the
// iterations are the others.
const onesProgressStream = 1 << 63

// ones is the evolutionary search of ONES. A schedule says of each device, in the
// order of nodes, which job has it; how many it has says what batch it trains, see
// batchOn. Every interval, and whenever something happens,
//
//   - what is left of each job is predicted and its limit is set anew, see
//     onesJob.scale;
//   - the schedules that survived are refreshed: jobs that ended are taken out of
//     them, and jobs above their limit are cut to it;
//   - as many are made by crossing random pairs of these, and as many by taking
//     jobs out of them;
//   - all are padded: jobs that are new get the least they run on, then the others
//     what they may have, those first that have least left to do;
//   - those survive in which the jobs have least left to do together, in
//     device-seconds: the smallest remaining utilization is first (SRUF);
//   - the best is laid out such that few devices change, see layOut, and the others
//     in the order of the devices that their jobs hold.
//
// The best is applied where no job is disturbed, and altogether when every job that would
// be has trained for an epoch, or for two minutes, since it got its devices: see stay.
//
// Source: Bian, Li, Wang and You, "Online evolutionary batch size orchestration for
// scheduling deep learning workloads in GPU clusters", SC 2021; its artifact
// kurisusnowdeng/ones_sc21 at commit 8535358. Differs: see onesProgress and
// layOut; jobs start on the fewest devices they run on, where that is not one,
// and have the sizes they can have; each is in one group of nodes. Throughputs are
// the oracle's. An epoch is what a job trains until it logs a loss; in the artifact,
// whose jobs of 5 to 58 epochs run for 128 s on average, it lasts some seconds, here
// up to hours, and one job in a long epoch would block all others: two minutes
// are enough too. Jobs have at most the devices they ask for, in the artifact
// four times as many. Both were chosen on jobs drawn like Pollux's and ONES's, other
// ones than those of docs/benchmarks/README.md. An iteration is made every 30 s, in the
// artifact every second.
type ones struct {
	belief   *candidate.Belief
	batcher  scheduler.Batcher // nil = jobs train their own batch
	losses   scheduler.LossLog // nil = nothing is logged
	progress *onesProgress

	population          int
	crossover, mutation float64
	scale, most, epochs float64
	pad, reorder        bool
	known, sample       bool
	interval, stay      time.Duration
	seed, iteration     uint64

	jobs      map[int]*onesJob // by order of arrival, of those inside
	kinds     map[onesKind]*onesSizes
	shapes    map[onesShape]*candidate.Config
	survivors []onesSchedule
	orders    []int // of arrival, of the jobs that survivors tell of
	asked     onesAsked
}

// onesAsked is what was asked last and answered.
type onesAsked struct {
	now      time.Duration
	jobs     []int // orders of arrival
	grants   []*scheduler.Grant
	decision scheduler.Decision
}

// again reports whether the same is asked again.
func (a *onesAsked) again(s *scheduler.Snapshot) bool {
	jobs := s.Jobs()
	if len(jobs) == 0 || a.now != s.Now || len(a.jobs) != len(jobs) {
		return false
	}
	for i, j := range jobs {
		if a.jobs[i] != j.Order || a.grants[i] != j.Grant {
			return false
		}
	}
	return true
}

// keep remembers what was answered.
func (a *onesAsked) keep(s *scheduler.Snapshot, d scheduler.Decision) {
	a.now, a.decision, a.jobs, a.grants = s.Now, d, a.jobs[:0], a.grants[:0]
	for _, j := range s.Jobs() {
		a.jobs, a.grants = append(a.jobs, j.Order), append(a.grants, j.Grant)
	}
}

func (p *ones) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if p.asked.again(s) {
		return p.asked.decision, nil
	}
	p.iteration++
	jobs, err := p.look(ctx, s)
	if err != nil {
		return scheduler.Decision{}, err
	}
	e := p.evolve(s, jobs)
	d, err := p.apply(ctx, s, e)
	if err != nil {
		return d, err
	}
	if len(jobs) > 0 {
		d.Wake = s.Now + p.interval
	}
	p.asked.keep(s, d)
	d.Grants = slices.Clone(d.Grants)
	return d, nil
}
