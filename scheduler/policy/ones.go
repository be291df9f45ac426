package policy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name: "ones",
		Doc:  "schedules that evolve, batches that grow with the devices, least left to do first (Bian et al., ONES, SC 2021); resizes and preempts",
		Options: []Option{
			{Name: "population", Default: "16", Doc: "schedules that survive an iteration"},
			{Name: "interval", Default: "30", Doc: "seconds between two iterations though nothing happened"},
			{Name: "crossover", Default: "0.5", Doc: "probability that a device is swapped between two schedules; 0 = none are crossed"},
			{Name: "mutation", Default: "0.3", Doc: "probability that a job is taken out of a schedule; 0 = none is"},
			{Name: "pad", Default: "true", Doc: "who has least to do is first to get devices that are left over; else chance says who is"},
			{Name: "reorder", Default: "true", Doc: "lay jobs out so that fewest devices change; else by arrival"},
			{Name: "batch", Default: "true", Doc: "batches grow with the devices, where a job may train other batches than its own"},
			{Name: "scale", Default: "16", Doc: "times its batch on one device up to which a job's batch grows, at least as many as the devices it asks for: what its learning rate may be multiplied by"},
			{Name: "most", Default: "1", Doc: "times the devices it asks for that a job may have; 4 in ONES's artifact"},
			{Name: "epochs", Default: "1", Doc: "epochs a running job trains before its devices change"},
			{Name: "stay", Default: "120", Doc: "seconds of training before its devices change that do as well, however long its epochs are"},
			{Name: "known", Default: "false", Doc: "what is left of each job is known, not learnt from losses"},
			{Name: "sample", Default: "true", Doc: "what is left of a job is drawn from what is believed of it; else the mean"},
		},
		New: newOnes,
	})
}

func newOnes(d Deps) (scheduler.Policy, error) {
	p := &ones{belief: newBelief(d), losses: d.Losses, seed: d.Seed, jobs: map[int]*onesJob{}, kinds: map[onesKind]*onesSizes{}, shapes: map[onesShape]*option{}}
	p.batcher, _ = d.Oracle.(scheduler.Batcher)
	p.progress = newOnesProgress(rand.New(rand.NewPCG(d.Seed, onesProgressStream)))
	population := 0.0
	err := d.numbers(
		inRange{"population", 16, 1, 4096, &population},
		inRange{"crossover", 0.5, 0, 1, &p.crossover},
		inRange{"mutation", 0.3, 0, 1, &p.mutation},
		inRange{"scale", 16, 1, 1e6, &p.scale},
		inRange{"most", 1, 1, 1e6, &p.most},
		inRange{"epochs", 1, 0, 1e6, &p.epochs})
	if err != nil {
		return nil, err
	}
	if p.population = int(population); float64(p.population) != population {
		return nil, fmt.Errorf("population=%g is not a whole number", population)
	}
	batch := true
	for _, o := range []struct {
		name  string
		def   bool
		value *bool
	}{{"pad", true, &p.pad}, {"reorder", true, &p.reorder}, {"batch", true, &batch}, {"known", false, &p.known}, {"sample", true, &p.sample}} {
		if *o.value, err = d.flag(o.name, o.def); err != nil {
			return nil, err
		}
	}
	if !batch {
		p.batcher = nil
	}
	if p.interval, err = d.seconds("interval", 30*time.Second); err != nil {
		return nil, err
	}
	p.interval = max(p.interval, leastWake)
	if p.stay, err = d.seconds("stay", 2*time.Minute); err != nil {
		return nil, err
	}
	return p, nil
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
//     them, and who has more than its limit has as much;
//   - as many are made by crossing random pairs of these, and as many by taking
//     jobs out of them;
//   - all are padded: jobs that are new get the least they run on, then the others
//     what they may have, those first that have least left to do;
//   - those survive in which the jobs have least left to do together, in
//     device-seconds: the smallest remaining utilization is first (SRUF);
//   - the best is laid out such that fewest devices change, see layOut, and the others
//     in the order of the devices that their jobs hold.
//
// The best is put in place where nobody is disturbed, and altogether when everybody
// who would be has trained for an epoch since it was given its devices, or for two
// minutes: see stay.
//
// Source: Bian, Li, Wang and You, "Online evolutionary batch size orchestration for
// scheduling deep learning workloads in GPU clusters", SC 2021; its artifact
// kurisusnowdeng/ones_sc21 at commit 8535358. Differs: see onesProgress and
// onesLayout; jobs start on the fewest devices they run on, where that is not one,
// and have the sizes they can have; each is in one group of nodes. Throughputs are
// the oracle's. An epoch is what a job trains until it logs a loss; in the artifact,
// whose jobs of 5 to 58 epochs run for 128 s on average, it lasts some seconds, here
// up to hours, and one job that has to finish it would hold up everybody: so two
// minutes do as well. Jobs have at most the devices they ask for, in the artifact
// four times as many. Both were chosen on jobs drawn like Pollux's and ONES's, other
// ones than those of docs/results.md. An iteration is made every 30 s, in the
// artifact every second.
type ones struct {
	belief   *belief
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
	shapes    map[onesShape]*option
	survivors []onesSchedule
	orders    []int // of arrival, of the jobs that survivors tell of
	asked     onesAsked
	unproven  bool // some layout was
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
