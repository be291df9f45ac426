package schedulertest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
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

// The number of cases of TestSoak.
const (
	quickCases = 200
	soakCases  = 10_000
)

// TestSoak simulates random workloads, clusters, failures, speeds, costs and policies,
// each drawn from a seed. A recount from the events must agree with the result, every
// job that can end must end, and a repeated run must be equal to the byte. PACER_SOAK=1
// runs soakCases, PACER_SOAK_SEED=N the case of that seed.
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

// happened counts the events of all cases, to show that each kind occurs.
type happened struct {
	sync.Mutex
	jobs, finished, rejected, unfinished, restarts, preemptions, failures, lossy int
	shared, evictions, reclaims                                                  int
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
		h.evictions += j.Evictions
		h.reclaims += j.Reclaims
	}
}

func (h *happened) String() string {
	return fmt.Sprintf("%d jobs under %d policies: %d finished, %d rejected, %d reported unfinished; %d restarts, %d of them preemptions; %d failures, %d jobs lost work; %d changes of sharing; %d evictions, %d jobs stopped by spot capacity",
		h.jobs, len(h.policies), h.finished, h.rejected, h.unfinished, h.restarts, h.preemptions, h.failures, h.lossy, h.shared, h.evictions, h.reclaims)
}

// soak is a simulation drawn from a seed.
type soak struct {
	seed      uint64
	world     *schedulertest.World // nil = jobs have durations
	rates     map[rateKey]float64  // speeds of world
	config    sim.Config           // without policy, admission and placement
	costs     map[string]sim.ModelCosts
	policy    policy.Spec
	keeps     map[string]float64 // by two models, the relative speed of the first when they share devices
	couples   bool               // jobs share devices at random, see randomPairs
	admission string
	placement string
	mayNotEnd bool            // nodes fail for good, or often enough that jobs may never end
	windows   sim.OutageTable // of maintenance
	spot      sim.OutageTable
	quotas    []soakQuota // of admission cohorts, nil = another rule
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
	s.planned(draws{rand.New(rand.NewPCG(seed, 3))})
	s.drawQuotas(draws{rand.New(rand.NewPCG(seed, 4))})
	return s
}

// check runs the case twice with a recount, and adds its events to all.
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
		return fmt.Errorf("a second run with the jobs in another order differs:\n%s\n%s", first, second)
	}
	return nil
}

// run runs the case and returns its events and result as text.
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
		Rate: s.rate, Beside: s.beside, Away: s.away, Quotas: s.checkQuotas, Costs: func(j *spec.Job) sim.ModelCosts { return s.costs[j.Model.Name] },
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

// soakTimeout is far longer than a case takes, so a case that reaches it makes no
// progress.
var soakTimeout = spectest.Patience(2 * time.Minute)

func idOf(j *spec.Job) spec.JobID {
	if j == nil {
		return ""
	}
	return j.ID
}

// compose makes new instances of policy, admission rule and placer.
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
		c.Policy = randomPairs{c.Policy, s}
	}
	return errors.Join(errs[:]...)
}

// rate returns the speed of a job.
func (s *soak) rate(j *spec.Job, g *scheduler.Grant) float64 {
	if s.world == nil {
		return 1
	}
	return s.rates[rateKey{j.Model.Name, s.accelerator(g), g.Plan.String(), g.Shape.Devices}]
}

// accelerator returns the accelerator of a grant.
func (s *soak) accelerator(g *scheduler.Grant) string {
	group, node := 0, g.Slots[0].Node
	for node >= s.config.Cluster.Groups[group].Count {
		node -= s.config.Cluster.Groups[group].Count
		group++
	}
	return s.config.Cluster.Groups[group].Accelerator.Name
}

// beside returns the speed of a job that shares devices with another.
func (s *soak) beside(j *spec.Job, g *scheduler.Grant, other *spec.Job) float64 {
	return s.keeps[j.Model.Name+other.Model.Name] * s.rate(j, g)
}

// allEnd checks that all jobs that fit have ended, and that all others were rejected.
func (s *soak) allEnd(r *sim.Result) error {
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if (s.fits(&j.Job) && s.quotaFits(&j.Job)) == (j.Rejected != "") {
			return fmt.Errorf("job %s asks for %d devices of %q with %v each; rejected: %q", j.Job.ID, j.Job.Devices, j.Job.Accelerator, j.Job.Host, j.Rejected)
		}
		if j.Unfinished != "" && !s.mayNotEnd {
			return fmt.Errorf("job %s on %d devices does not end: %s", j.Job.ID, j.Job.Devices, j.Unfinished)
		}
	}
	return nil
}
