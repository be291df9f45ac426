package themis

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Info is the registry entry of policy themis.
var Info = policy.Info{
	Name:    "themis",
	Doc:     "finish-time fairness: auctions leases among the jobs with the worst rho, by partial allocation (Mahajan et al., Themis, NSDI 2020); preempts",
	Options: options,
	New:     newThemis,
}

var options = []policy.Option{
	{Name: "f", Default: "0.8", Max: 1, Doc: "fairness f: the fraction 1-f of the jobs, those with the worst rho, bids"},
	{Name: "lease", Default: "1200", Unit: "s", Max: 1e9, Doc: "seconds of a lease; all leases end together"},
}

func newThemis(d policy.Deps) (scheduler.Policy, error) {
	v := d.Values(options)
	f, lease := v.Float("f"), v.Duration("lease")
	return &themis{finder: candidate.NewFinder(d), bidding: 1 - f, lease: max(lease, policy.MinWake), seed: d.Seed}, v.Err()
}

// themis is Themis (sections 4 and 5 of the paper) for jobs that need all their devices,
// each job an app of its own. Of the jobs without a lease, those with the worst rho bid for
// the devices without a lease. Leftover devices are leased to the jobs that hold them, then
// to others at random, so that no usable device is idle.
//
// Rho is the paper's finish-time fairness (section 4.1): the time in the shared cluster
// divided by the time on a 1/N share:
//
//	rho = (now - submit + left) / (alone * max(1, N*d/C))
//
//	left   remaining seconds, if the job runs from now on at its fastest offer
//	alone  total seconds there
//	N      number of jobs in the system, averaged since the job arrived
//	d, C   devices of the job and of the cluster: on C/N devices it runs (C/N)/d of the time
//
// Differs: the paper's apps can use any number of devices up to the cluster (d = C). Here a
// bid is for the whole gang, and a job without one is assumed to wait for the next lease.
// The paper assigns all leftover devices at random, which would stop jobs for no reason.
// All leases end together, so that wide gangs find room. A hidden payment shortens a lease,
// but to no less than a tenth, counted from the start of progress.
//
// Speeds are predicted, else from recorded durations. A job with neither is assumed to have
// one lease left.
type themis struct {
	finder  *candidate.Finder
	bidding float64 // fraction of the jobs that bids
	lease   time.Duration
	seed    uint64

	before, after ledger // at the start of an instant and after its decision, so that Decide is idempotent
}

// ledger is the state between decisions.
type ledger struct {
	at       time.Duration
	accounts map[spec.JobID]account
	area     float64       // integral of the number of jobs in the system, job-seconds
	end      time.Duration // of the leases
	auctions uint64
}

// account is the entry of a job in the ledger.
type account struct {
	arrived time.Duration
	area    float64       // ledger.area at arrival
	until   time.Duration // when its lease ends
}

// Settled implements policy.Settled.
func (t *themis) Settled() {}

// Decide computes rho of all contenders, runs the auctions and leases the leftover devices.
func (t *themis) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if s.Now > t.after.at {
		t.before = t.after
	}
	t.after = t.before.advance(s)
	if len(s.Waiting) == 0 {
		return scheduler.Decision{Keep: true}, nil
	}
	r := leasing{themis: t, s: s, ledger: &t.after, free: s.Free(), grants: make([]*scheduler.Grant, len(s.Jobs()))}
	r.spare = r.free.Clone()
	if s.Now >= r.ledger.end {
		r.ledger.end = s.Now + t.lease
	}
	if err := r.contend(ctx); err != nil {
		return scheduler.Decision{}, err
	}
	r.auction()
	r.deal()
	d := r.decision()
	r.explain(&d)
	return d, nil
}

// advance returns the ledger as of s.
func (l ledger) advance(s *scheduler.Snapshot) ledger {
	out := l
	out.at, out.accounts = s.Now, make(map[spec.JobID]account, len(s.Jobs()))
	out.area += float64(len(l.accounts)) * (s.Now - l.at).Seconds()
	for _, j := range s.Jobs() {
		a, ok := l.accounts[j.Job.ID]
		if !ok {
			a = account{arrived: s.Now, area: out.area}
		}
		out.accounts[j.Job.ID] = a
	}
	return out
}

// contention returns N of rho, for a job with account a.
func (l *ledger) contention(a account) float64 {
	if sec := (l.at - a.arrived).Seconds(); sec > 0 {
		return (l.area - a.area) / sec
	}
	return float64(len(l.accounts))
}

// leasing is one decision of Themis.
type leasing struct {
	*themis
	s          *scheduler.Snapshot
	ledger     *ledger
	free       *scheduler.Inventory // devices without a lease
	spare      *scheduler.Inventory // devices of free that no job holds
	grants     []*scheduler.Grant   // by job
	contenders []contender
	warnings   []string
}

// contender is a job without a lease.
type contender struct {
	index      int // index into the snapshot's jobs
	state      *scheduler.JobState
	candidates *candidate.Set
	rho        float64
	offers     []offer // one per group, ascending by remaining time
	served     bool    // has a new lease
}

// offer is a gang in a group for a job.
type offer struct {
	group int
	left  float64 // remaining seconds including the start cost, above 0
	alone float64 // total seconds
}

// contend keeps the grants of jobs with a current lease, and makes the other jobs
// contenders.
func (r *leasing) contend(ctx context.Context) error {
	for i, j := range r.s.Jobs() {
		if j.Grant != nil && r.leasedUntil(j) > r.s.Now {
			r.grants[i] = j.Grant
			continue
		}
		w, err := r.finder.AsSubmitted(ctx, r.s.Cluster, j.Job)
		if err != nil {
			return err
		}
		c := contender{index: i, state: j, candidates: w, offers: r.offers(j, w)}
		c.rho = r.rho(&c)
		r.contenders = append(r.contenders, c)
		if j.Grant != nil {
			r.free.Give(j.Grant.Slots)
		}
	}
	return nil
}

// leasedUntil returns when a running job may be stopped.
func (r *leasing) leasedUntil(j *scheduler.JobState) time.Duration {
	return max(min(r.ledger.accounts[j.Job.ID].until, r.ledger.end), j.Ready+r.least())
}

// least is the minimal duration of a lease.
func (t *themis) least() time.Duration { return max(t.lease/10, policy.MinWake) }

// offers returns the offers of the groups in which j can run.
func (r *leasing) offers(j *scheduler.JobState, w *candidate.Set) []offer {
	var out []offer
	for gi := range r.s.Cluster.Groups {
		left, alone, ok := r.needs(j, w, gi)
		if ok {
			out = append(out, offer{gi, max(left+r.startCost(j, gi), 1e-9), alone})
		}
	}
	slices.SortStableFunc(out, func(a, b offer) int { return cmp.Compare(a.left, b.left) })
	return out
}

// needs returns the remaining and total training seconds of a job in a group; false if it
// cannot run there.
func (r *leasing) needs(j *scheduler.JobState, w *candidate.Set, group int) (left, alone float64, ok bool) {
	whole := j.Done + j.Remaining
	for k := range w.Configs {
		if o := &w.Configs[k]; o.Group == group { // the fastest of the group
			return j.Remaining / o.Rate, whole / o.Rate, true
		}
	}
	g := &r.s.Cluster.Groups[group]
	switch sec := j.Job.Duration.Seconds(); {
	case !w.Blind || !j.Job.Accepts(g) || g.MostDevices(j.Job.Host) < j.Job.Devices:
		return 0, 0, false
	case sec > 0:
		return j.Remaining / whole * sec, sec, true
	}
	left = r.lease.Seconds()
	return left, left + j.Attained/float64(j.Job.Devices), true
}

// startCost returns the start cost of j in a group, 0 if it runs there.
func (r *leasing) startCost(j *scheduler.JobState, group int) float64 {
	if j.Grant != nil && r.free.Group[j.Grant.Slots[0].Node] == group {
		return 0
	}
	return j.StartCost.Seconds()
}

// rho returns the finish-time fairness of c, 0 if it can run nowhere.
func (r *leasing) rho(c *contender) float64 {
	if len(c.offers) == 0 {
		return 0
	}
	j, o := c.state, &c.offers[0]
	share := r.ledger.contention(r.ledger.accounts[j.Job.ID]) * float64(j.Job.Devices) / float64(r.s.Cluster.Devices())
	return (r.waited(j) + o.left) / (o.alone * max(share, 1))
}

// waited returns the seconds since j was submitted.
func (r *leasing) waited(j *scheduler.JobState) float64 { return (r.s.Now - j.Job.Submit).Seconds() }
