package schedulertest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// How many cases TestSoak runs.
const (
	quickCases = 200
	soakCases  = 10_000
)

// Random workloads, clusters, failures, speeds, costs and compositions, each from
// its seed: whatever happens, a recount from the events agrees with the result,
// who can end does, and the run can be repeated to the byte. PACER_SOAK=1 runs
// many, PACER_SOAK_SEED=N the one of that seed.
func TestSoak(t *testing.T) {
	if text := os.Getenv("PACER_SOAK_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("PACER_SOAK_SEED=%s is not a seed", text)
		}
		c := drawSoak(seed)
		t.Log(c)
		var all happened
		if err := c.check(&all); err != nil {
			t.Error(err)
		}
		t.Log(&all)
		return
	}
	cases := quickCases
	if os.Getenv("PACER_SOAK") != "" {
		cases = soakCases
	}
	seeds := make(chan uint64)
	var wait sync.WaitGroup
	var all happened
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for seed := range seeds {
				c := drawSoak(seed)
				if err := c.check(&all); err != nil {
					t.Errorf("%s\n%v\nPACER_SOAK_SEED=%d go test ./scheduler/schedulertest -run 'TestSoak$' -v runs it alone", c, err, seed)
				}
			}
		})
	}
	for seed := range uint64(cases) {
		if t.Failed() {
			break
		}
		seeds <- seed + 1
	}
	close(seeds)
	wait.Wait()
	t.Logf("%d cases: %v", cases, &all)
}

// happened counts what happened in all cases, so that one sees that it did.
type happened struct {
	sync.Mutex
	jobs, finished, rejected, unfinished, restarts, preemptions, failures, lossy int
	shared                                                                       int
	policies                                                                     map[string]bool
}

func (h *happened) add(policy string, r *sim.Result) {
	h.Lock()
	defer h.Unlock()
	if h.policies == nil {
		h.policies = map[string]bool{}
	}
	h.policies[policy] = true
	for i := range r.Jobs {
		j := &r.Jobs[i]
		h.jobs++
		for count, is := range map[*int]bool{
			&h.finished: j.Finished, &h.rejected: j.Rejected != "", &h.unfinished: j.Unfinished != "", &h.lossy: j.LostSteps > 0,
		} {
			if is {
				*count++
			}
		}
		h.restarts += j.Restarts
		h.preemptions += j.Preemptions
		h.failures += j.Failures
	}
}

func (h *happened) String() string {
	return fmt.Sprintf("%d jobs under %d policies: %d finished, %d rejected, %d reported unfinished; %d restarts, %d of them preemptions; %d failures, %d jobs lost work; %d changes of company",
		h.jobs, len(h.policies), h.finished, h.rejected, h.unfinished, h.restarts, h.preemptions, h.failures, h.lossy, h.shared)
}

// soak is a simulation drawn from a seed.
type soak struct {
	seed      uint64
	world     *schedulertest.World // nil = jobs are known by their durations
	rates     map[rateKey]float64  // what the world knows
	config    sim.Config           // but for its parts
	costs     map[string]sim.ModelCosts
	policy    policy.Spec
	keeps     map[string]float64 // of the speed of a model beside another that it keeps
	couples   bool               // whatever the policy, jobs share devices at random
	admission string
	placement string
	mayNotEnd bool // nodes fail for good, or often enough that jobs may never end
	facts     []string
}

type rateKey struct{ model, accelerator, plan, shape string }

func (s *soak) String() string {
	return fmt.Sprintf("seed %d: %d jobs on %v, policy %s, admission %q, placement %q, round %v, %s",
		s.seed, len(s.config.Jobs), clusterWords(s.config.Cluster), s.policy, s.admission, s.placement, s.config.Round, strings.Join(s.facts, ", "))
}

func clusterWords(c spec.Cluster) (out []string) {
	for _, g := range c.Groups {
		out = append(out, fmt.Sprintf("%dx%dx%s", g.Count, g.Devices, g.Accelerator.Name))
	}
	return out
}

func drawSoak(seed uint64) *soak {
	s := &soak{seed: seed}
	d := draws{rand.New(rand.NewPCG(seed, 1))}
	s.cluster(d)
	if d.chance(0.7) {
		s.drawWorld(d)
	}
	s.jobs(d)
	s.parts(d)
	s.drawCosts(d)
	s.failures(d)
	if d.chance(0.4) {
		v := sim.Variation{Sigma: d.between(0, 0.4), Seed: seed}
		if d.chance(0.6) {
			v.Every, v.Last, v.Slow = d.time(600, 86400), d.time(60, 7200), d.between(0.1, 0.9)
		}
		s.config.Speeds = v
		s.facts = append(s.facts, fmt.Sprintf("speeds %+v", v))
	}
	s.pairs(draws{rand.New(rand.NewPCG(seed, 2))})
	return s
}

// pairs lets jobs of some models share devices, and at times has them do so.
func (s *soak) pairs(d draws) {
	s.keeps = map[string]float64{}
	for _, pair := range []string{"aa", "ab", "ac", "bb", "bc", "cc"} {
		if a, b := pair[:1], pair[1:]; s.world != nil && d.chance(0.7) {
			s.keeps[a+b], s.keeps[b+a] = d.between(0.1, 1), d.between(0.1, 1)
			s.world.Pair(a, b, s.keeps[a+b], s.keeps[b+a])
		}
	}
	if s.couples = s.world != nil && d.chance(0.5); s.couples {
		s.policy = policy.Spec{Name: one(d, "fifo", "fifo-backfill")}
		s.facts = append(s.facts, fmt.Sprintf("couples %v", s.keeps))
	}
}

// draws is what a case is drawn with.
type draws struct{ *rand.Rand }

func (d draws) chance(p float64) bool             { return d.Float64() < p }
func (d draws) between(lo, hi float64) float64    { return lo + d.Float64()*(hi-lo) }
func (d draws) time(lo, hi float64) time.Duration { return time.Duration(d.between(lo, hi) * 1e9) }
func one[T any](d draws, of ...T) T               { return of[d.IntN(len(of))] }

func (s *soak) cluster(d draws) {
	for i := range 1 + d.IntN(2) {
		s.config.Cluster.Groups = append(s.config.Cluster.Groups, spec.NodeGroup{
			Count: 1 + d.IntN(5), Devices: one(d, 1, 2, 4, 8), Accelerator: spec.Accelerator{Name: string(rune('x' + i))},
			Racks: one(d, spec.Racks{}, spec.Racks{Nodes: 2, Bps: 1e9}), CPUs: one(d, 0, 3, 8, 96), HostBytes: one(d, 0, 1<<35, 1<<40+1.0),
		})
	}
}

var soakModels = []string{"a", "b", "c"}

// drawWorld lets models run on powers of two of devices, on the fewest nodes and
// at times on twice as many.
func (s *soak) drawWorld(d draws) {
	s.world, s.rates = &schedulertest.World{}, map[rateKey]float64{}
	add := func(model, accelerator string, shape spec.Shape, rate float64) {
		plan := schedulertest.OnePlan(shape.Total())
		s.world.Add(model, accelerator, plan, shape, rate)
		s.rates[rateKey{model, accelerator, plan.String(), shape.Devices}] = rate
	}
	for _, model := range soakModels {
		for _, g := range s.config.Cluster.Groups {
			for n := 1; n <= g.Count*g.Devices; n *= 2 {
				if n > 1 && d.chance(0.4) {
					continue
				}
				rate := d.between(0.1, 10)
				add(model, g.Accelerator.Name, spec.Packed(n, g.Devices), rate)
				if half := n / 2; half > 0 && half <= g.Devices && g.Count > 1 && spec.Packed(n, g.Devices) != spec.NewShape(half, half) && d.chance(0.5) {
					add(model, g.Accelerator.Name, spec.NewShape(half, half), rate*d.between(0.2, 1))
				}
			}
		}
	}
}

func (s *soak) jobs(d draws) {
	for i := range 1 + d.IntN(30) {
		j := spec.Job{
			ID: spec.JobID(fmt.Sprintf("j%02d", i)), Model: spec.Model{Name: one(d, soakModels...)},
			Submit: d.time(0, 4*3600), Guaranteed: d.chance(0.5), Weight: one(d, 0, 1, 4.0),
			Deadline: one(d, 0, 2*time.Hour, 9*time.Hour), Tenant: one(d, "", "t", "u"),
		}
		if d.chance(0.3) {
			j.Submit = j.Submit.Truncate(time.Hour)
		}
		if s.world == nil {
			s.durationJob(d, &j)
		} else {
			s.worldJob(d, &j)
		}
		if d.chance(0.03) {
			j.Accelerator = "none"
		}
		if d.chance(0.03) {
			j.Devices, j.Plan = 1000, schedulertest.OnePlan(1000)
		}
		s.host(d, &j)
		s.config.Jobs = append(s.config.Jobs, j)
	}
}

// host lets some jobs need CPUs and memory, at times more than there are.
func (s *soak) host(d draws, j *spec.Job) {
	if d.chance(0.5) {
		return
	}
	most, n := schedulertest.MostHost(s.config.Cluster, j.Devices), 1.0
	if s.world == nil { // any layout will do: needs may keep jobs from packing
		n = one(d, 1, 1, 2.0)
	}
	if most.MilliCPUs < spec.Unlimited {
		j.Host.MilliCPUs = int64(n * d.Float64() * float64(most.MilliCPUs))
	}
	if most.Bytes < spec.Unlimited {
		j.Host.Bytes = int64(n * one(d, 0, d.Float64(), 1) * float64(most.Bytes))
	}
	unlimited := slices.ContainsFunc(s.config.Cluster.Groups, func(g spec.NodeGroup) bool { return g.CPUs == 0 })
	if d.chance(0.05) && (s.world == nil || !unlimited) { // a world does not know every job in every group
		j.Host.MilliCPUs = 97000
	}
}

// fits reports whether the nodes of some group that j accepts are enough for it.
func (s *soak) fits(j *spec.Job) bool {
	return slices.ContainsFunc(s.config.Cluster.Groups, func(g spec.NodeGroup) bool {
		side := 0 // devices of a node
		for side < g.Devices && (g.CPUs == 0 || j.Host.MilliCPUs*int64(side+1) <= 1000*int64(g.CPUs)) &&
			(g.HostBytes == 0 || float64(j.Host.Bytes*int64(side+1)) <= g.HostBytes) {
			side++
		}
		return (j.Accelerator == "" || j.Accelerator == g.Accelerator.Name) && j.Devices <= side*g.Count
	})
}

// durationJob asks for what some group has.
func (s *soak) durationJob(d draws, j *spec.Job) {
	g := one(d, s.config.Cluster.Groups...)
	j.Devices = 1 + d.IntN(g.Count*g.Devices)
	j.Duration = d.time(1, 5*3600)
	if d.chance(0.5) {
		j.Plan = schedulertest.OnePlan(j.Devices)
	}
	if d.chance(0.3) {
		j.Accelerator = g.Accelerator.Name
	}
	s.config.Truth = sim.Durations{}
}

// worldJob asks for what the world knows.
func (s *soak) worldJob(d draws, j *spec.Job) {
	var can []spec.Config
	for _, c := range s.world.Configs() {
		if c.Model.Name == j.Model.Name {
			can = append(can, c)
		}
	}
	c := one(d, can...)
	j.Devices, j.Plan, j.Steps = c.Shape.Total(), c.Plan, d.between(1, 5000)
	if d.chance(0.2) {
		j.Accelerator = c.Accelerator.Name
	}
	s.config.Truth = s.world.Truth(s.config.Cluster)
}

func (s *soak) parts(d draws) {
	s.policy = policy.Spec{Name: one(d, builtin.Policies.Placing(false)...).Name}
	s.admission = one(d, "", "", "load:1.2", "load:0.5", "quota:4")
	s.placement = one(d, place.All()...).Name
	s.config.Round = one(d, 0, 0, d.time(30, 900).Truncate(time.Second))
}

func (s *soak) drawCosts(d draws) {
	s.costs = map[string]sim.ModelCosts{}
	switch d.IntN(3) {
	case 0:
		launch := d.time(0, 120)
		for _, m := range soakModels {
			s.costs[m] = sim.ModelCosts{Launch: launch}
		}
		s.config.Costs = sim.PerStart(func(spec.Job) time.Duration { return launch })
		s.facts = append(s.facts, fmt.Sprintf("starts of %v", launch))
	case 1:
		for _, m := range soakModels {
			s.costs[m] = sim.ModelCosts{Launch: d.time(0, 60), Checkpoint: one(d, 0, d.time(0, 60)), Restore: d.time(0, 60), Reshard: d.time(0, 60)}
		}
		s.config.Costs = &sim.CostTable{Models: s.costs}
		s.facts = append(s.facts, fmt.Sprintf("costs %v", s.costs))
	}
	if d.chance(0.6) {
		s.config.CheckpointEvery = one(d, d.time(60, 3600), 5*time.Minute)
		s.facts = append(s.facts, fmt.Sprintf("checkpoints every %v", s.config.CheckpointEvery))
	}
}

func (s *soak) failures(d draws) {
	switch d.IntN(4) {
	case 0:
	case 1:
		life := sim.Lifetime{Up: d.time(3600, 2*86400), Down: d.time(60, 7200)}
		lives, err := sim.NewLifetimes(s.config.Cluster, s.seed, func(*spec.NodeGroup) sim.Lifetime { return life })
		if err != nil {
			panic(err) // the draw is wrong
		}
		s.config.Failures, s.config.Horizon, s.mayNotEnd = lives, 20*24*time.Hour, true
		s.facts = append(s.facts, fmt.Sprintf("lifetimes %v until %v", life, s.config.Horizon))
	default:
		table := sim.OutageTable{}
		for node := range s.config.Cluster.Nodes() {
			at := d.time(0, 6*3600)
			for range d.IntN(4) {
				if d.chance(0.3) {
					at = at.Truncate(time.Hour) // when other things happen too
				}
				o := sim.Outage{Down: at, Up: at + d.time(1, 3*3600)}
				if d.chance(0.1) {
					o.Up, s.mayNotEnd = 1<<62, true
				}
				table[node] = append(table[node], o)
				if o.Up == 1<<62 {
					break
				}
				at = o.Up + one(d, 0, d.time(0, 8*3600))
			}
		}
		for node, list := range table { // truncated times may have moved one before the end of the last
			for i := 1; i < len(list); i++ {
				list[i].Down = max(list[i].Down, list[i-1].Up)
				list[i].Up = max(list[i].Up, list[i].Down+1)
			}
			table[node] = list
		}
		s.config.Failures = table
		s.facts = append(s.facts, fmt.Sprintf("outages %v", table))
	}
}

// check runs the case twice, and recounts. What happened is added to all.
func (s *soak) check(all *happened) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	first, err := s.run(false, all)
	if err != nil {
		return err
	}
	second, err := s.run(true, &happened{})
	if err != nil {
		return err
	}
	if first != second {
		return fmt.Errorf("the run repeated, its jobs in another order, differs:\n%s\n%s", first, second)
	}
	return nil
}

// run runs the case and returns all that came out of it.
func (s *soak) run(reversed bool, all *happened) (string, error) {
	c := s.config
	if reversed {
		c.Jobs = nil
		for i := range s.config.Jobs {
			c.Jobs = append(c.Jobs, s.config.Jobs[len(s.config.Jobs)-1-i])
		}
	}
	if err := s.compose(&c); err != nil {
		return "", err
	}
	r := &schedulertest.Recount{
		Cluster: c.Cluster, Jobs: c.Jobs, Round: c.Round, Horizon: c.Horizon, Every: c.CheckpointEvery, Speeds: c.Speeds,
		Rate: s.rate, Beside: s.beside, Costs: func(j *spec.Job) sim.ModelCosts { return s.costs[j.Model.Name] },
	}
	var out strings.Builder
	c.Audit = true
	c.Observe = func(e sim.Event) {
		r.Observe(e)
		if e.Kind == sim.Shared {
			all.Lock()
			all.shared++
			all.Unlock()
		}
		fmt.Fprintf(&out, "%d %s %d %s %v %q\n", e.At, e.Kind, e.Node, idOf(e.Job), e.Grant, e.Why)
	}
	ctx, stop := context.WithTimeout(context.Background(), soakTimeout)
	defer stop()
	result, err := sim.Run(ctx, c)
	if err != nil {
		return "", err
	}
	if err := r.Check(result); err != nil {
		return "", err
	}
	if err := s.allEnd(result); err != nil {
		return "", err
	}
	all.add(s.policy.Name, result)
	result.Elapsed = 0
	fmt.Fprintf(&out, "%+v", *result)
	return out.String(), nil
}

// soakTimeout is far beyond what a case takes: a case that reaches it makes no progress.
var soakTimeout = spectest.Patience(2 * time.Minute)

func idOf(j *spec.Job) spec.JobID {
	if j == nil {
		return ""
	}
	return j.ID
}

// compose makes the parts of the case anew.
func (s *soak) compose(c *sim.Config) error {
	d := policy.Deps{Seed: s.seed}
	if s.world != nil {
		d.Oracle = s.world.Oracle(0.2, s.seed)
	}
	var errs [3]error
	d.Placer, errs[0] = place.Lookup(s.placement)
	c.Admission, errs[1] = admission.New(s.admission, d)
	c.Policy, errs[2] = builtin.Policies.New(s.policy, d)
	c.PolicyName = s.policy.String()
	if s.couples {
		c.Policy = matchmaker{c.Policy, s}
	}
	return errors.Join(errs[:]...)
}

// rate is how fast a job runs.
func (s *soak) rate(j *spec.Job, g *scheduler.Grant) float64 {
	if s.world == nil {
		return 1
	}
	return s.rates[rateKey{j.Model.Name, s.accelerator(g), g.Plan.String(), g.Shape.Devices}]
}

// accelerator names that of a grant.
func (s *soak) accelerator(g *scheduler.Grant) string {
	group, node := 0, g.Slots[0].Node
	for node >= s.config.Cluster.Groups[group].Count {
		node -= s.config.Cluster.Groups[group].Count
		group++
	}
	return s.config.Cluster.Groups[group].Accelerator.Name
}

// beside is how fast a job runs beside another.
func (s *soak) beside(j *spec.Job, g *scheduler.Grant, other *spec.Job) float64 {
	return s.keeps[j.Model.Name+other.Model.Name] * s.rate(j, g)
}

// allEnd checks that who could run has ended, and that only who could not was
// turned away.
func (s *soak) allEnd(r *sim.Result) error {
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if s.fits(&j.Job) == (j.Rejected != "") {
			return fmt.Errorf("job %s asks for %d devices of %q with %v each; rejected: %q", j.Job.ID, j.Job.Devices, j.Job.Accelerator, j.Job.Host, j.Rejected)
		}
		if j.Unfinished != "" && !s.mayNotEnd {
			return fmt.Errorf("job %s on %d devices does not end: %s", j.Job.ID, j.Job.Devices, j.Unfinished)
		}
	}
	return nil
}
