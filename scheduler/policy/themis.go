package policy

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name: "themis",
		Doc:  "finish-time fairness: leases of whole gangs are auctioned among the jobs with the worst rho, by partial allocation (Mahajan et al., NSDI 2020); preempts",
		Options: []Option{
			{Name: "f", Default: "0.8", Doc: "fairness: the part 1-f of the jobs, those with the worst rho, bids; in [0, 1]"},
			{Name: "lease", Default: "1200", Doc: "seconds a gang is leased for; all leases end together"},
		},
		New: newThemis,
	})
}

func newThemis(d Deps) (scheduler.Policy, error) {
	f, err := d.number("f", 0.8, 0, 1)
	if err != nil {
		return nil, err
	}
	lease, err := d.seconds("lease", 1200*time.Second)
	if err != nil {
		return nil, err
	}
	return &themis{belief: newBelief(d), bidding: 1 - f, lease: max(lease, leastWake), seed: d.Seed}, nil
}

// themis is the Themis of sections 4 and 5 of the paper for jobs that are whole
// gangs, each its own app. Of the jobs without a lease, those with the worst rho
// bid for the devices that no lease is on; what is left is leased again to those
// who hold it, then to others at random, so that no device idles that somebody
// could use.
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
// d = C; a bid is for the whole gang, and who gets nothing is taken to wait for a
// lease (partialAllocation). It draws lots for all that is left, which would stop
// jobs for no reason. All leases end together, else no wide gang would ever find
// room; a hidden payment makes a lease shorter, but none is shorter than a tenth,
// counted from when progress begins.
//
// Speeds are the oracle's, else those that recorded durations say. A job of which
// nobody knows anything is taken to have one lease to go.
type themis struct {
	belief  *belief
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
	spare      *scheduler.Inventory // what of it nobody holds either
	grants     []*scheduler.Grant   // target, by job
	contenders []contender
	warnings   []string
}

// contender is a job without a lease.
type contender struct {
	at     int // index into the snapshot's jobs
	state  *scheduler.JobState
	ways   *ways
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
		w, err := r.belief.asSubmitted(ctx, r.s.Cluster, j.Job)
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
func (t *themis) least() time.Duration { return max(t.lease/10, leastWake) }

// offers returns what gangs in the groups that j could run in would mean to it.
func (r *leasing) offers(j *scheduler.JobState, w *ways) []offer {
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
func (r *leasing) needs(j *scheduler.JobState, w *ways, group int) (left, alone float64, ok bool) {
	whole := j.Done + j.Remaining
	for k := range w.options {
		if o := &w.options[k]; o.group == group { // the fastest of the group
			return j.Remaining / o.rate, whole / o.rate, true
		}
	}
	g := &r.s.Cluster.Groups[group]
	switch sec := j.Job.Duration.Seconds(); {
	case !w.blind || !accepts(j.Job, g) || g.MostDevices(j.Job.Host) < j.Job.Devices:
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

// auction sells gangs to the contenders with the worst rho: first each bids where
// it would be done first, then those who lost where they would be done next.
func (r *leasing) auction() {
	r.ledger.auctions++
	order := make([]*contender, len(r.contenders))
	for i := range r.contenders {
		order[i] = &r.contenders[i]
	}
	slices.SortStableFunc(order, func(a, b *contender) int { return cmp.Compare(b.rho, a.rho) })
	bidders := order[:int(math.Ceil(r.bidding*float64(len(order))))]
	for choice := range r.s.Cluster.Groups {
		for group := range r.s.Cluster.Groups {
			r.sell(bidders, choice, group)
		}
	}
}

// mostCells bounds the tables of an auction. In one that is larger only the worst
// off bid, as many as there is room for.
const mostCells = 1 << 20

// sell auctions the free devices of a group among those bidders to whom it is the
// given choice.
func (r *leasing) sell(bidders []*contender, choice, group int) {
	devices := r.free.FreeIn(group)
	var who []*contender
	var lots []lot
	for _, c := range bidders {
		if c.gone || len(c.offers) <= choice || c.offers[choice].group != group || c.state.Job.Devices > devices {
			continue
		}
		if gain := r.gain(c, c.offers[choice].left); gain > 0 && (len(lots)+2)*(devices+1) <= mostCells {
			who = append(who, c)
			lots = append(lots, lot{c.state.Job.Devices, gain})
		}
	}
	awards := partialAllocation(devices, lots)
	for _, holds := range []bool{true, false} { // who stays where it is before who needs a place
		for i, a := range awards {
			if a.won && (who[i].state.Grant != nil) == holds {
				r.give(who[i], group, a.keeps)
			}
		}
	}
}

// gain returns the logarithm of how many times 1/rho is with a gang what it is
// after waiting for the next lease, at most 0 if it is not worth having.
func (r *leasing) gain(c *contender, left float64) float64 {
	waited := r.waited(c.state)
	later := c.offers[0].left + (r.ledger.end - r.s.Now).Seconds()
	if c.state.Grant != nil {
		later += c.state.StartCost.Seconds()
	}
	return math.Log((waited + later) / (waited + left))
}

// give leases c a gang in a group for a part of the time until the leases end. That
// there are enough devices does not mean that they are on the right nodes: then it
// gets nothing.
func (r *leasing) give(c *contender, group int, part float64) {
	if g := r.place(c, group); g != nil {
		r.lend(c, g, part)
	}
}

// lend writes down the lease of devices that were taken for c.
func (r *leasing) lend(c *contender, g *scheduler.Grant, part float64) {
	c.gone = true
	r.grants[c.at] = g
	a := r.ledger.accounts[g.Job]
	a.until = r.s.Now + max(time.Duration(part*float64(r.ledger.end-r.s.Now)), r.least())
	r.ledger.accounts[g.Job] = a
	if c.ways.warning != "" && g != c.state.Grant {
		r.warnings = append(r.warnings, c.ways.warning)
	}
}

// place takes devices of a group for c: those it holds, unless somebody took them;
// else some that nobody holds; else also some of those whose leases are over.
func (r *leasing) place(c *contender, group int) *scheduler.Grant {
	if old := c.state.Grant; old != nil && r.free.Group[old.Slots[0].Node] == group && r.free.Take(old.Slots) {
		return old
	}
	g := r.belief.placeIn(r.spare, group, c.state.Job, c.ways)
	if g == nil || !r.free.Take(g.Slots) { // spare counts devices, not what of the host is taken with them
		if g = r.belief.placeIn(r.free, group, c.state.Job, c.ways); g == nil {
			return nil
		}
		r.free.Take(g.Slots)
	}
	for _, s := range g.Slots {
		if n := min(s.Devices, r.spare.Free[s.Node]); n > 0 {
			r.spare.Take([]scheduler.Slot{{Node: s.Node, Devices: n}})
		}
	}
	return g
}

// deal leases what is left to the other contenders: again to those who hold it,
// then at random.
func (r *leasing) deal() {
	for i := range r.contenders {
		c := &r.contenders[i]
		if old := c.state.Grant; old != nil && !c.gone && r.free.Take(old.Slots) {
			r.lend(c, old, 1)
		}
	}
	rng := rand.New(rand.NewPCG(r.seed, r.ledger.auctions))
	for _, i := range rng.Perm(len(r.contenders)) {
		c := &r.contenders[i]
		for _, o := range c.offers {
			if !c.gone {
				r.give(c, o.group, 1)
			}
		}
	}
}

// decision is the target, and when the first lease ends that somebody waits for.
func (r *leasing) decision() scheduler.Decision {
	d := scheduler.Decision{Warnings: r.warnings}
	wake := never
	for i, g := range r.grants {
		if g == nil {
			continue
		}
		d.Grants = append(d.Grants, g)
		j := r.s.Jobs()[i]
		until := r.leasedUntil(j)
		if g != j.Grant {
			until = max(min(r.ledger.accounts[j.Job.ID].until, r.ledger.end), r.s.Now+j.StartCost+r.least())
		}
		wake = min(wake, until)
	}
	if len(d.Grants) < len(r.s.Jobs()) && wake < never {
		d.Wake = max(wake, r.s.Now+leastWake)
	}
	return d
}

// explain says what decided about the jobs that had no lease.
func (r *leasing) explain(d *scheduler.Decision) {
	if !r.s.Reasons {
		return
	}
	for i := range r.contenders {
		c := &r.contenders[i]
		switch g := r.grants[c.at]; {
		case g == nil && c.state.Grant != nil:
			d.Because(r.s, c.state.Job.ID, "its lease is over, and its rho of %.3g is not among the worst", c.rho)
		case g == nil:
			d.Because(r.s, c.state.Job.ID, "no devices without a lease are left for its rho of %.3g", c.rho)
		case g != c.state.Grant:
			until := r.ledger.accounts[c.state.Job.ID].until
			d.Because(r.s, c.state.Job.ID, "leased until %.0f s, by its rho of %.3g", until.Seconds(), c.rho)
		}
	}
}
