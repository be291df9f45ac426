package policy

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	interval := Option{Name: "interval", Default: "600", Doc: "seconds after which it decides anew though nothing happened"}
	register(Info{
		Name:    "optimus-oracle",
		Doc:     "devices one by one to whom they save most time, knowing what is left of each job (Peng et al., Optimus, EuroSys 2018); resizes and preempts",
		Options: []Option{interval},
		Servers: ServesToo,
		New:     newOptimusOracle,
	})
	interval.Doc = "seconds between two decisions about the sizes of running jobs"
	register(Info{
		Name: "optimus",
		Doc:  "devices one by one to whom they save most time, what is left of each job by its training loss (Peng et al., Optimus, EuroSys 2018); resizes and preempts",
		Options: []Option{
			interval,
			{Name: "young", Default: "0.95", Doc: "what a second saved counts of a job whose loss does not tell yet when it ends"},
		},
		Servers: ServesToo,
		New:     newOptimus,
	})
}

func newOptimusOracle(d Deps) (scheduler.Policy, error) {
	p, err := newAnyOptimus(d)
	switch {
	case err != nil:
		return nil, err
	case d.Servers != nil:
		return newServedOptimus(d, p), nil
	case d.Quirks.EveryRound:
		p.interval = leastWake
	}
	return p, nil
}

func newOptimus(d Deps) (scheduler.Policy, error) {
	p, err := newAnyOptimus(d)
	if err != nil {
		return nil, err
	}
	p.convergence = newConvergence(d.Losses)
	if p.young, err = d.number("young", 0.95, 0, 1); err != nil {
		return nil, err
	}
	if d.Servers != nil {
		return newServedOptimus(d, p), nil
	}
	return p, nil
}

func newAnyOptimus(d Deps) (*optimus, error) {
	interval, err := d.seconds("interval", 600*time.Second)
	return &optimus{belief: newBelief(d), known: map[curveKey]*curveSizes{}, interval: max(interval, leastWake),
		anywhere: d.Quirks.ByCount, next: d.Quirks.NextReplica, last: -never}, err
}

// optimus is the allocation and placement of Optimus (sections 4.1 and 4.2) for
// jobs without parameter servers (servedOptimus is that for those with), as in petuum/adaptdl at commit c793c70: with Q
// steps left that take T(n) seconds on n devices, going from n to m is worth
//
//	gain = y * Q * (T(n) - T(m)) / ((m - n) * D)
//
//	T  the oracle's belief, seconds
//	Q  convergence.left; of the oracle variant JobState.Remaining
//	D  the dominant share of a device with what the job needs of the host for it,
//	   in shares of devices: 1 where the job needs nothing of the host
//	y  young, while what is left is a guess; else 1
//
// Jobs of which nothing is believed run as submitted, in their turn.
//
// With convergence the sizes of running jobs are decided on once in an interval, as
// in the paper, and what they save has to be more than a restart costs: estimates
// change all the time. In between devices that are free go to jobs that wait, which
// in the paper wait for the interval.
type optimus struct {
	belief      *belief
	known       map[curveKey]*curveSizes
	interval    time.Duration
	anywhere    bool         // any free devices will do, compat.Quirks.ByCount
	next        bool         // only the next size counts, compat.Quirks.NextReplica
	convergence *convergence // nil = what is left is known
	young       float64
	last        time.Duration // when sizes of running jobs were decided on
}

// size is a number of devices a job may run on.
type size struct {
	devices int
	sec     float64  // of a step
	options []option // fastest first
}

// curveSizes is what a curve says, by group.
type curveSizes struct {
	curve *curve
	sizes [][]size
}

// grower is a job that gets devices.
type grower struct {
	*scheduler.JobState
	left    float64 // steps it is taken to have left
	worth   float64 // of a second saved
	share   float64 // dominant share of a device, in shares of devices
	keeps   bool    // what it holds, whatever its size
	arrival int
	group   int
	sizes   []size // ascending; none for jobs of which nothing is believed
	at      int    // of sizes, what it is to get
	gain    float64
	to      int   // of sizes, what it would get for gain
	ways    *ways // of jobs without sizes
	grant   *scheduler.Grant
}

func (g *grower) devices() int {
	if g.keeps {
		return g.Grant.Devices()
	}
	if len(g.sizes) == 0 {
		return g.Job.Devices
	}
	return g.sizes[g.at].devices
}

func (p *optimus) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{}
	idle := s.Idle()
	left := make([]int, len(s.Cluster.Groups))
	for gi := range left {
		left[gi] = idle.FreeIn(gi)
	}
	if p.convergence != nil {
		p.convergence.look(s)
	}
	settled := p.settle(s, idle.Group, left)
	var growers []*grower
	for i, j := range s.Jobs() {
		g := &grower{JobState: j, keeps: true, group: -1}
		if !settled || j.Grant == nil {
			var err error
			if g, err = p.begin(ctx, s, j, idle.Group, left); err != nil {
				return d, err
			}
		}
		if g == nil {
			d.Because(s, j.Job.ID, "the least it can run on is not left at its turn by arrival")
			continue
		}
		g.arrival = i
		p.foresee(ctx, s, g)
		growers = append(growers, g)
	}
	p.grow(growers, left)
	if p.convergence != nil {
		p.relent(growers, left)
	}
	p.place(growers, idle, s.Cluster)
	for _, g := range growers {
		if s.Reasons {
			g.explain(s, &d)
		}
		if g.grant == nil {
			continue
		}
		d.Grants = append(d.Grants, g.grant)
		if g.ways != nil && g.ways.warning != "" {
			d.Warnings = append(d.Warnings, g.ways.warning)
		}
	}
	if len(s.Jobs()) > 0 {
		d.Wake = p.last + p.interval
	}
	return d, nil
}

// settle reports whether running jobs stay as they are this time, and takes what
// they hold from left if so.
func (p *optimus) settle(s *scheduler.Snapshot, nodes, left []int) bool {
	if p.convergence == nil || s.Now == p.last || s.Now >= p.last+p.interval {
		p.last = s.Now
		return false
	}
	for _, j := range s.Jobs() {
		if j.Grant != nil {
			left[nodes[j.Grant.Slots[0].Node]] -= j.Grant.Devices()
		}
	}
	return true
}

// foresee works out what is left of g, and what its devices cost the others.
func (p *optimus) foresee(ctx context.Context, s *scheduler.Snapshot, g *grower) {
	g.left, g.worth, g.share = g.Remaining, 1, 1
	if g.keeps {
		return
	}
	if p.convergence != nil {
		young := false
		if g.left, young = p.convergence.left(ctx, g.JobState); young {
			g.worth = p.young
		}
	}
	g.share = dominantShare(&s.Cluster.Groups[g.group], g.Job.Host)
}

// dominantShare returns the largest share of a group that a device takes with what
// it needs of the host, over the share of devices.
func dominantShare(g *spec.NodeGroup, need spec.Host) float64 {
	share := 1.0
	if g.CPUs > 0 {
		share = max(share, float64(need.MilliCPUs)*float64(g.Devices)/(1000*float64(g.CPUs)))
	}
	if g.HostBytes > 0 {
		share = max(share, float64(need.Bytes)*float64(g.Devices)/g.HostBytes)
	}
	return share
}

// relent lets running jobs keep their sizes where others save no more than a restart
// costs, and where nobody needs what they would give up.
func (p *optimus) relent(growers []*grower, left []int) {
	stay := func(when func(g *grower, more int, held *size) bool) {
		for _, g := range growers {
			at := -1
			if g.Grant != nil && !g.keeps {
				at = slices.IndexFunc(g.sizes, func(s size) bool { return s.devices == g.Grant.Devices() })
			}
			if at < 0 || at == g.at {
				continue
			}
			if more := g.devices() - g.sizes[at].devices; when(g, more, &g.sizes[at]) {
				left[g.group] += more
				g.at = at
			}
		}
	}
	stay(func(g *grower, more int, held *size) bool {
		return more > 0 && g.left*(held.sec-g.sizes[g.at].sec) <= g.StartCost.Seconds()
	})
	stay(func(g *grower, more int, _ *size) bool { return more < 0 && -more <= left[g.group] })
}

// explain says what decided about the devices of g.
func (g *grower) explain(s *scheduler.Snapshot, d *scheduler.Decision) {
	switch {
	case g.grant == nil:
		d.Because(s, g.Job.ID, "size %d is meant for it, and finds no room together", g.devices())
	case g.grant.Same(g.Grant):
	case len(g.sizes) == 0:
		d.Because(s, g.Job.ID, "as submitted: nothing is known of its speed")
	default:
		d.Because(s, g.Job.ID, "size %d, each device of which saves it more time than it would others: %.0f s are left", g.grant.Devices(), g.left*g.sizes[g.at].sec)
	}
}

// begin takes the fewest devices j can run on, in the group where it runs or else
// the one where it is fastest on them; nil if they are not left. nodes tells the
// group of each node.
func (p *optimus) begin(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState, nodes, left []int) (*grower, error) {
	cv, err := p.belief.curve(ctx, s.Cluster, j.Job)
	if err != nil {
		return nil, err
	}
	best := &grower{JobState: j, group: -1}
	for gi, sizes := range p.sizes(j.Job, cv, &s.Cluster) {
		if len(sizes) == 0 || sizes[0].devices > left[gi] {
			continue
		}
		if j.Grant != nil && nodes[j.Grant.Slots[0].Node] == gi {
			best.group, best.sizes = gi, sizes
			break
		}
		if best.group < 0 || sizes[0].sec < best.sizes[0].sec {
			best.group, best.sizes = gi, sizes
		}
	}
	if len(cv.options) == 0 {
		best.ways, err = p.belief.asSubmitted(ctx, s.Cluster, j.Job)
		if err != nil {
			return nil, err
		}
		best.group = p.rigid(s, j, nodes, left)
	}
	if best.group < 0 {
		return nil, nil
	}
	left[best.group] -= best.devices()
	return best, nil
}

// rigid returns the group that has the devices j was submitted with, -1 if none
// has: the one it runs in, or else the first.
func (p *optimus) rigid(s *scheduler.Snapshot, j *scheduler.JobState, nodes, left []int) int {
	for gi := range s.Cluster.Groups {
		fits := accepts(j.Job, &s.Cluster.Groups[gi])
		if j.Grant != nil {
			fits = nodes[j.Grant.Slots[0].Node] == gi
		}
		if fits && left[gi] >= j.Job.Devices {
			return gi
		}
	}
	return -1
}

// sizes returns what the curve of j says of each group.
func (p *optimus) sizes(j *spec.Job, cv *curve, c *spec.Cluster) [][]size {
	key := curveKey{kindOf: kind(j), precision: j.Plan.Precision, accelerator: j.Accelerator}
	if known := p.known[key]; known != nil && known.curve == cv {
		return known.sizes
	}
	out := make([][]size, len(c.Groups))
	for i := 0; i < len(cv.options); {
		group, devices, k := cv.options[i].group, cv.options[i].devices, i
		for k < len(cv.options) && cv.options[k].group == group && cv.options[k].devices == devices {
			k++
		}
		out[group] = append(out[group], p.size(cv.options[i:k], c.Groups[group].Devices))
		i = k
	}
	p.known[key] = &curveSizes{cv, out}
	return out
}

// size is what options on equally many devices are. Where any devices will do,
// steps are believed to take as long as packed.
func (p *optimus) size(options []option, perNode int) size {
	o := options[0]
	if p.anywhere {
		packed := spec.Packed(o.devices, perNode)
		o = options[max(slices.IndexFunc(options, func(o option) bool { return o.shape == packed }), 0)]
	}
	return size{o.devices, 1 / o.rate, options}
}

// grow gives what is left to whom it is worth most, until it is worth nothing to
// anybody.
func (p *optimus) grow(growers []*grower, left []int) {
	h := binaryHeap[*grower]{less: byGain}
	for _, g := range growers {
		if g.keeps {
			continue
		}
		if p.look(g, left[g.group]); g.gain > 0 {
			h.items = append(h.items, g)
		}
	}
	h.init()
	for len(h.items) > 0 {
		g := h.items[0]
		if more := g.sizes[g.to].devices - g.devices(); more <= left[g.group] {
			left[g.group] -= more
			g.at = g.to
		}
		if p.look(g, left[g.group]); g.gain > 0 {
			h.again()
		} else {
			h.pop()
		}
	}
}

// look works out what more devices are worth to g, at most left more.
func (p *optimus) look(g *grower, left int) {
	g.gain = 0
	for i := g.at + 1; i < len(g.sizes) && g.sizes[i].devices-g.devices() <= left; i++ {
		more := float64(g.sizes[i].devices - g.devices())
		if gain := g.worth * g.left * (g.sizes[g.at].sec - g.sizes[i].sec) / (more * g.share); gain > g.gain {
			g.gain, g.to = gain, i
		}
		if p.next {
			return
		}
	}
}

// byGain has the one with the largest gain first, of equal ones the one that arrived
// first.
func byGain(a, b *grower) bool {
	return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.arrival, b.arrival)) < 0
}

// place finds nodes: who keeps its number of devices keeps them, the others
// follow by number, the fewest first (section 4.2).
func (p *optimus) place(growers []*grower, free *scheduler.Inventory, c spec.Cluster) {
	var others []*grower
	for _, g := range growers {
		if g.keeps || g.Grant != nil && g.Grant.Devices() == g.devices() && free.Group[g.Grant.Slots[0].Node] == g.group {
			g.grant = g.Grant
			free.Take(g.grant.Slots)
		} else {
			others = append(others, g)
		}
	}
	slices.SortStableFunc(others, func(a, b *grower) int { return cmp.Compare(a.devices(), b.devices()) })
	for _, g := range others {
		if g.grant = p.find(g, free, c); g.grant != nil {
			free.Take(g.grant.Slots)
		}
	}
}

// find returns a grant for g of devices that are free. Where those of its size do
// not lie as they have to, it gets fewer.
func (p *optimus) find(g *grower, free *scheduler.Inventory, c spec.Cluster) *scheduler.Grant {
	if len(g.sizes) == 0 {
		return p.belief.place(free, c, g.Job, g.ways)
	}
	for i := g.at; i >= 0; i-- {
		sz := &g.sizes[i]
		if g.Grant != nil && g.Grant.Devices() == sz.devices && free.Clone().Take(g.Grant.Slots) {
			return g.Grant
		}
		if grant := p.ofSize(g, sz, free); grant != nil {
			return grant
		}
	}
	return nil
}

func (p *optimus) ofSize(g *grower, sz *size, free *scheduler.Inventory) *scheduler.Grant {
	if !p.anywhere {
		for i := range sz.options {
			if grant := p.belief.placeOption(free, g.Job, &sz.options[i]); grant != nil {
				return grant
			}
		}
		return nil
	}
	shape, ok := p.belief.lay(free, g.group, g.Job, sz.devices)
	if !ok {
		return nil
	}
	o := option{group: g.group, plan: sz.options[0].plan, shape: shape, devices: sz.devices}
	return p.belief.placeOption(free, g.Job, &o)
}
