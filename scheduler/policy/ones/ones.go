package ones

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Info is the registry entry of policy ones.
var Info = policy.Info{
	Name:    "ones",
	Doc:     "evolutionary search over schedules; batches grow with devices, and the smallest remaining utilization goes first (Bian et al., ONES, SC 2021); resizes and preempts",
	Options: options,
	New:     newPolicy,
}

var options = []policy.Option{
	{Name: "population", Default: "16", Min: 1, Max: 4096, Doc: "number of schedules that survive an iteration"},
	{Name: "interval", Default: "30", Unit: "s", Max: 1e9, Doc: "seconds between two iterations without an event"},
	{Name: "crossover", Default: "0.5", Max: 1, Doc: "probability that a device is swapped between two schedules; 0 = no crossover"},
	{Name: "mutation", Default: "0.3", Max: 1, Doc: "probability that a job is removed from a schedule; 0 = no mutation"},
	{Name: "fill-by-remaining", Default: "true", Doc: "give idle devices of a schedule to jobs in order of remaining time, shortest first; false: in random order"},
	{Name: "reorder", Default: "true", Doc: "order the jobs on the devices so that few devices change jobs; false: by arrival"},
	{Name: "batch", Default: "true", Doc: "let batches grow with devices, for jobs that may train other batches than the submitted one"},
	{Name: "scale", Default: "16", Min: 1, Max: 1e6, Doc: "bound on the batch of a job, as a multiple of its batch on one device, and so on the learning rate; at least the requested devices"},
	{Name: "max-devices-factor", Default: "1", Min: 1, Max: 1e6, Doc: "bound on the devices of a job, as a multiple of the requested devices; 4 in ONES's artifact"},
	{Name: "epochs", Default: "1", Max: 1e6, Doc: "epochs a job trains before its devices may change"},
	{Name: "min-train", Default: "120", Unit: "s", Max: 1e9, Doc: "seconds a job trains before its devices may change, if that is less than its epochs"},
	{Name: "known-remaining", Default: "false", Doc: "use the true remaining steps instead of an estimate from losses"},
	{Name: "sample", Default: "true", Doc: "draw the remaining samples of a job from their estimated distribution; false: use the mean"},
}

func newPolicy(d policy.Deps) (scheduler.Policy, error) {
	p := &ones{finder: candidate.NewFinder(d), losses: d.Losses, seed: d.Seed, jobs: map[int]*trackedJob{}, kinds: map[candidate.SubmittedKey]*sizeTable{}, shapes: map[shapeKey]*candidate.Config{}}
	p.batcher, _ = d.Oracle.(scheduler.Batcher)
	p.progress = newProgressModel(rand.New(rand.NewPCG(d.Seed, progressStream)))
	v := d.Values(options)
	p.population = v.Int("population")
	p.crossover, p.mutation, p.scale = v.Float("crossover"), v.Float("mutation"), v.Float("scale")
	p.maxDevicesFactor, p.epochs = v.Float("max-devices-factor"), v.Float("epochs")
	p.fillByRemaining, p.reorder, p.knownRemaining, p.sample = v.Bool("fill-by-remaining"), v.Bool("reorder"), v.Bool("known-remaining"), v.Bool("sample")
	if !v.Bool("batch") {
		p.batcher = nil
	}
	p.interval, p.minTrain = max(v.Duration("interval"), policy.MinWake), v.Duration("min-train")
	return p, v.Err()
}

// progressStream is the random stream of the progress model; iterations use their number.
const progressStream = 1 << 63

// ones is the evolutionary search of ONES. A schedule assigns a job to each device. The
// number of devices of a job determines its batch, see batchOn. At every event, and every
// interval without one, Decide
//
//   - predicts the remaining samples of each job and sets its limit (scaleLimits);
//   - refreshes the survivors: removes jobs that ended, cuts jobs to their limits;
//   - adds schedules by uniform crossover of random pairs, and by uniform mutation;
//   - fills the idle devices of all: new jobs get their least size, then the others grow to
//     their limits, shortest remaining time first;
//   - selects the schedules with the smallest remaining utilization, in device-seconds (SRUF);
//   - lays out the best schedule so that few devices change jobs (layOut).
//
// It applies the starts of the best schedule at once, and its other changes once every job
// they affect has trained for an epoch or two minutes on its devices (mayDisturb).
//
// Source: Bian, Li, Wang and You, "Online evolutionary batch size orchestration for
// scheduling deep learning workloads in GPU clusters", SC 2021; its artifact
// kurisusnowdeng/ones_sc21 at commit 8535358. Differs: see progressModel and layOut. A job
// starts on the least size it can run on, which may be more than one device, and is in one
// group of nodes. Throughputs are those of the oracle. An epoch is the interval between two
// logged losses. In the artifact it lasts seconds (jobs have 5 to 58 epochs and run for
// 128 s on average); here it may last hours, and a job in a long epoch would block changes
// to all others, hence two minutes. Jobs get at most the devices they request; in the
// artifact four times as many. Both values were chosen on jobs drawn like those of Pollux
// and ONES, but not on the jobs of docs/benchmarks/README.md. An iteration runs every 30 s,
// in the artifact every second.
type ones struct {
	finder   *candidate.Finder
	batcher  scheduler.Batcher // nil = jobs train their own batch
	losses   scheduler.LossLog // nil = no losses are logged
	progress *progressModel

	population                      int
	crossover, mutation             float64
	scale, maxDevicesFactor, epochs float64
	fillByRemaining, reorder        bool
	knownRemaining, sample          bool
	interval, minTrain              time.Duration
	seed, iteration                 uint64

	jobs      map[int]*trackedJob // jobs in the system, by JobState.Order
	kinds     map[candidate.SubmittedKey]*sizeTable
	shapes    map[shapeKey]*candidate.Config
	survivors []schedule
	orders    []int // JobState.Order of the jobs in survivors, by index
	last      policy.Memo
}

// Decide runs one iteration of the search and applies its best schedule; see ones.
func (p *ones) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if d, ok := p.last.Of(s); ok {
		return d, nil
	}
	p.iteration++
	jobs, err := p.observe(ctx, s)
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
	return p.last.Keep(s, d), nil
}
