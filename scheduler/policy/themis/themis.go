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

var Info = policy.Info{
	Name:    "themis",
	Doc:     "finish-time fairness: leases of whole gangs are auctioned among the jobs with the worst rho by partial allocation (Mahajan et al., NSDI 2020); preempts",
	Options: options,
	New:     newThemis,
}

var options = []policy.Option{
	{Name: "f", Default: "0.8", Max: 1, Doc: "fairness: the part 1-f of the jobs, those with the worst rho, bids; in [0, 1]"},
	{Name: "lease", Default: "1200", Unit: "s", Max: 1e9, Doc: "seconds a gang is leased for; all leases end together"},
}

func newThemis(d policy.Deps) (scheduler.Policy, error) {
	v := d.Values(options)
	f, lease := v.Float("f"), v.Seconds("lease")
	return &themis{belief: candidate.NewFinder(d), bidding: 1 - f, lease: max(lease, policy.MinWake), seed: d.Seed}, v.Err()
}

// themis is the Themis of sections 4 and 5 of the paper for jobs that are whole
// gangs, each its own app. Of the jobs without a lease, those with the worst rho
// bid for the devices without a lease. What is left is leased again to the jobs that
// hold it, then to others at random, so that no usable device is idle.
//
// Rho is the paper's finish-time fairness (section 4.1), the time a job will have
// taken over what it would take on its own share of the cluster:
//
//	rho = (now - submit + left) / (alone * max(1, N*d/C))
//
//	left   what is still to run, at once and at its best, seconds
//	alone  what all of it takes so, seconds
//	N      jobs inside, averaged over the time since the job came in
//	d, C   devices it asks for, devices there are: a share of C/N runs a gang of d for (C/N)/d of the time
//
// Differs: the paper's apps can use any number of devices, up to the cluster, where
// d = C; a bid is for the whole gang, and a job that gets nothing is assumed to wait for a
// lease (partialAllocation). It draws lots for all that is left, which would stop
// jobs for no reason. All leases end together, else no wide gang would ever find
// room; a hidden payment makes a lease shorter, but none is shorter than a tenth,
// counted from when progress begins.
//
// Speeds are the oracle's, else those of recorded durations. A job without either is
// assumed to have one lease to go.
type themis struct {
	belief  *candidate.Finder
	bidding float64 // part of the jobs
	lease   time.Duration
	seed    uint64

	before, after ledger // as it was when an instant began, and once it was decided
}

// ledger is what Themis remembers.
type ledger struct {
	at       time.Duration
	accounts map[spec.JobID]account
	area     float64       // integral of the number of jobs inside, job-seconds
	end      time.Duration // of the leases
	auctions uint64
}

// account is a job's part of the ledger.
type account struct {
	came  time.Duration
	area  float64       // of the ledger then
	until time.Duration // when its lease ends
}

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
			a = account{came: s.Now, area: out.area}
		}
		out.accounts[j.Job.ID] = a
	}
	return out
}

// contention returns how many jobs were inside on average since one came.
func (l *ledger) contention(a account) float64 {
	if sec := (l.at - a.came).Seconds(); sec > 0 {
		return (l.area - a.area) / sec
	}
	return float64(len(l.accounts))
}

// leasing is one decision of Themis.
type leasing struct {
	*themis
	s          *scheduler.Snapshot
	ledger     *ledger
	free       *scheduler.Inventory // what no lease is on
	spare      *scheduler.Inventory // those of free that no job holds
	grants     []*scheduler.Grant   // target, by job
	contenders []contender
	warnings   []string
}

// contender is a job without a lease.
type contender struct {
	at     int // index into the snapshot's jobs
	state  *scheduler.JobState
	ways   *candidate.Set
	rho    float64
	offers []offer // a group each, the one it would be done in first before the others
	gone   bool    // has what it gets
}

// offer is what a gang in a group would mean to a job.
type offer struct {
	group int
	left  float64 // seconds until it was done, start cost included, above 0
	alone float64 // seconds that all of it takes
}

// contend lets the jobs whose leases go on keep what they hold, and makes the
// others contenders for the rest.
func (r *leasing) contend(ctx context.Context) error {
	for i, j := range r.s.Jobs() {
		if j.Grant != nil && r.leasedUntil(j) > r.s.Now {
			r.grants[i] = j.Grant
			continue
		}
		w, err := r.belief.AsSubmitted(ctx, r.s.Cluster, j.Job)
		if err != nil {
			return err
		}
		c := contender{at: i, state: j, ways: w, offers: r.offers(j, w)}
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

// least is the shortest a lease gets.
func (t *themis) least() time.Duration { return max(t.lease/10, policy.MinWake) }

// offers returns what gangs in the groups that j could run in would mean to it.
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

// needs returns the seconds of training that a job has left with a gang in a group,
// and all it needs; false if it cannot run there.
func (r *leasing) needs(j *scheduler.JobState, w *candidate.Set, group int) (left, alone float64, ok bool) {
	whole := j.Done + j.Remaining
	for k := range w.Configs {
		if o := &w.Configs[k]; o.Group == group { // the fastest of the group
			return j.Remaining / o.Rate, whole / o.Rate, true
		}
	}
	g := &r.s.Cluster.Groups[group]
	switch sec := j.Job.Duration.Seconds(); {
	case !w.Blind || !candidate.Accepts(j.Job, g) || g.MostDevices(j.Job.Host) < j.Job.Devices:
		return 0, 0, false
	case sec > 0:
		return j.Remaining / whole * sec, sec, true
	}
	left = r.lease.Seconds()
	return left, left + j.Attained/float64(j.Job.Devices), true
}

// startCost returns the seconds j would pay for a gang in a group, none if it has
// one there.
func (r *leasing) startCost(j *scheduler.JobState, group int) float64 {
	if j.Grant != nil && r.free.Group[j.Grant.Slots[0].Node] == group {
		return 0
	}
	return j.StartCost.Seconds()
}

// rho returns how unfairly late c will be, 0 if it can run nowhere.
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
